"""The learning rate over a run, as a factor of `optim.lr`."""

from __future__ import annotations

import math

from proxmo.config import OptimConfig


def learning_rate(config: OptimConfig, step: int) -> float:
    """Factor at an optimiser step, counted from 0: linear warm-up, then as `lr_schedule` says."""
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
    if config.lr_schedule == "constant":
        return 1.0
    steps = config.iterations * config.minibatches * config.epochs - config.warmup_steps
    done = min(1.0, (step - config.warmup_steps) / max(1, steps))
    return 1.0 - done if config.lr_schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))
