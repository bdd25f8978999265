"""The embedding "policy": a state is the policy's hidden state of its prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from proxmo.policies.batching import Sample, collate, micro_batches


def prompt_embeddings(
    model: Any,
    prompts: Sequence[Sequence[int]],
    *,
    pad_id: int,
    token_budget: int,
    pool: Literal["mean", "last"] = "mean",
) -> NDArray[np.float32]:
    """The last hidden states of prompts: the mean over tokens or the last token's, no gradient.

    Reads equal prompts once and skips the output head.

    Args:
        model: causal language model of transformers.
        prompts: token ids of S prompts, none empty.
        pad_id: padding token.
        token_budget: most tokens (padding included) in one forward pass.
        pool: "mean" over the tokens, or "last".

    Returns:
        (S, D), D the width of the model.
    """
    import torch

    distinct = list(dict.fromkeys(tuple(prompt) for prompt in prompts))
    place = {prompt: row for row, prompt in enumerate(distinct)}
    samples: list[Sample] = [(prompt, ()) for prompt in distinct]
    found = np.zeros((len(distinct), model.config.get_text_config().hidden_size), np.float32)
    plain = model.get_base_model() if hasattr(model, "get_base_model") else model
    was_training = model.training
    model.eval()
    with torch.inference_mode():
        for rows in micro_batches(samples, range(len(samples)), token_budget=token_budget):
            batch = collate([samples[row] for row in rows], pad_id=pad_id, device=model.device)
            hidden = plain.base_model(
                input_ids=batch.ids,
                attention_mask=batch.attention,
                position_ids=batch.positions,
                use_cache=False,
            ).last_hidden_state.float()
            if pool == "mean":
                mask = batch.attention.unsqueeze(-1)
                hidden = (hidden * mask).sum(1) / mask.sum(1)
            else:
                hidden = hidden[:, -1]  # padding is on the left
            found[rows] = hidden.cpu().numpy()
    model.train(was_training)
    return found[[place[tuple(prompt)] for prompt in prompts]]
