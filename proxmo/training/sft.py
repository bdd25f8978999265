"""The warm start of the embedded model: cross-entropy on responses and, with less weight, prompts.

`imitation` fine-tunes other models with the learner. This loop differs on purpose: it trains the
prompt, too, and the hidden matrices with Muon, which makes a model from nothing fluent in a minute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from proxmo.policies.batching import Sample, TokenBatch, collate

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class SftConfig:
    """Length and learning rates of the warm start."""

    steps: int
    batch_size: int = 32
    # AdamW learning rate.
    lr: float = 4e-3
    # Muon learning rate of the hidden weight matrices; None trains those with AdamW too.
    muon_lr: float | None = None
    warmup_steps: int = 30
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    # Weight of the prompt tokens' cross-entropy against 1 for the response's.
    prompt_weight: float = 0.3


def sft_loss(model: Any, batch: TokenBatch, *, prompt_weight: float) -> tuple[Tensor, Tensor]:
    """Cross-entropy of responses plus `prompt_weight` times that of prompts, and the former."""
    import torch

    logits = model(
        input_ids=batch.ids,
        attention_mask=batch.attention,
        position_ids=batch.positions,
        use_cache=False,
    ).logits[:, :-1]
    targets = batch.ids[:, 1:]
    losses = torch.nn.functional.cross_entropy(
        logits.float().reshape(-1, logits.shape[-1]), targets.reshape(-1), reduction="none"
    ).view(targets.shape)
    width = batch.response_mask.shape[1]
    response = (losses[:, -width:] * batch.response_mask).sum() / batch.response_mask.sum()
    # A prompt token counts only where both it and its predecessor are real.
    real = (batch.attention[:, 1:-width] * batch.attention[:, : -width - 1]).float()
    prompt = (losses[:, :-width] * real).sum() / real.sum().clamp_min(1.0)
    return response + prompt_weight * prompt, response.detach()


def fit(
    model: Any,
    samples: Sequence[Sample],
    config: SftConfig,
    *,
    pad_id: int,
    rng: np.random.Generator,
    progress: Callable[[int, float], None] | None = None,
) -> float:
    """Trains `model` in place with linear warm-up and cosine decay to a tenth.

    Args:
        model: causal language model.
        samples: (prompt ids, response ids) pairs, of which each step draws `batch_size`.
        config: length and rates.
        pad_id: padding token.
        rng: draws the samples.
        progress: called with (step, running mean of the response loss).

    Returns:
        The running mean of the response loss at the end.
    """
    import torch

    optimizers = _optimizers(model, config)
    schedules = [torch.optim.lr_scheduler.LambdaLR(o, partial(_rate, config)) for o in optimizers]
    mean = float("nan")
    model.train()
    for step in range(config.steps):
        drawn = [samples[int(i)] for i in rng.integers(len(samples), size=config.batch_size)]
        batch = collate(drawn, pad_id=pad_id, device=model.device)
        loss, response_loss = sft_loss(model, batch, prompt_weight=config.prompt_weight)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.max_grad_norm)
        for optimizer, schedule in zip(optimizers, schedules, strict=True):
            optimizer.step()
            schedule.step()
            optimizer.zero_grad(set_to_none=True)
        value = float(response_loss)
        mean = value if step == 0 else 0.95 * mean + 0.05 * value
        if progress is not None:
            progress(step + 1, mean)
    model.eval()
    return mean


def _rate(config: SftConfig, step: int) -> float:
    """Linear warm-up, then a cosine from 1 to 0.1."""
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
    done = (step - config.warmup_steps) / max(1, config.steps - config.warmup_steps)
    return 0.1 + 0.45 * (1.0 + math.cos(math.pi * min(done, 1.0)))


def _optimizers(model: Any, config: SftConfig) -> list[torch.optim.Optimizer]:
    """AdamW; with `muon_lr`, Muon (Jordan et al. 2024) for all matrices but embedding and head."""
    import torch

    matrices: list[torch.nn.Parameter] = []
    others: list[torch.nn.Parameter] = []
    for name, parameter in model.named_parameters():
        hidden = parameter.ndim == 2 and "embed" not in name and "lm_head" not in name
        (matrices if hidden and config.muon_lr is not None else others).append(parameter)
    found: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(others, lr=config.lr, weight_decay=config.weight_decay, betas=(0.9, 0.98))
    ]
    if config.muon_lr is not None:
        found.append(torch.optim.Muon(matrices, lr=config.muon_lr, weight_decay=0.0))
    return found
