"""Sentence embeddings of observations by a transformer encoder: mean-pooled last hidden states."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo.errors import DataError

Vectors = NDArray[np.float32]

# Texts in one forward pass; observations are short.
_BATCH = 64
# Observations longer than this are cut: the limit small sentence encoders were trained with.
_MAX_TOKENS = 256
# Vectors remembered per model. An encoder manages tens of texts a second on a CPU and agents see
# the same states in every iteration: 100,000 vectors of 384 numbers are 150 MB.
_REMEMBERED = 100_000


@lru_cache(maxsize=2)
def sentence_embedding(name: str) -> Callable[[list[str]], Vectors]:
    """The embedding by a Hugging Face encoder, a directory or a hub id.

    Raises:
        DataError: there is no such model here.
    """
    tokenizer, model = _load(name)
    known: dict[str, NDArray[np.float32]] = {}

    def embed(texts: list[str]) -> Vectors:
        new = sorted({text for text in texts if text not in known}, key=len)
        if len(known) + len(new) > _REMEMBERED:
            known.clear()
            new = sorted(set(texts), key=len)
        for start in range(0, len(new), _BATCH):
            batch = new[start : start + _BATCH]
            known.update(zip(batch, _encode(tokenizer, model, batch), strict=True))
        return np.stack([known[text] for text in texts])

    return embed


def _load(name: str) -> tuple[Any, Any]:
    from transformers import AutoModel, AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(name), AutoModel.from_pretrained(name).eval()
    except (OSError, ValueError) as error:
        raise DataError(
            f"embedding 'sentence:{name}': no encoder model there ({str(error).splitlines()[0]}); "
            "expected a directory or hub id that AutoModel loads"
        ) from error


def _encode(tokenizer: Any, model: Any, texts: list[str]) -> Vectors:
    import torch

    batch = tokenizer(
        texts, padding=True, truncation=True, max_length=_MAX_TOKENS, return_tensors="pt"
    )
    with torch.inference_mode():
        hidden = model(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1).to(hidden.dtype)
    return ((hidden * mask).sum(1) / mask.sum(1).clamp(min=1)).float().numpy()
