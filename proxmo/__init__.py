"""proxmo: reinforcement learning for LLM agents in multi-turn text environments.

    proxmo.train(config) -> Run      proxmo.evaluate(target, ...) -> Evaluation
    proxmo.credit.assign(method, ...)

Importing this package imports neither torch nor transformers; `train` and `evaluate` do when they
are called.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from proxmo.config import Config

if TYPE_CHECKING:
    from proxmo.evaluation import Evaluation
    from proxmo.training.loop import Run

__all__ = ["Config", "evaluate", "train"]
__version__ = "0.1.0"


def train(config: Config, *, out: str | Path, resume: bool = False, **options: Any) -> Run:
    """Trains an agent; see `proxmo.training.loop.Trainer` for the options and errors."""
    from proxmo.training.loop import Trainer

    return Trainer(config, out=Path(out), resume=resume, **options).run()


def evaluate(target: str | Path, **options: Any) -> Evaluation:
    """Evaluates a checkpoint, a run, or the players "expert" and "random" (these need `env=`)."""
    from proxmo.evaluation import evaluate_checkpoint, evaluate_policy

    if str(target) in ("expert", "random"):
        return evaluate_policy(str(target), **options)
    return evaluate_checkpoint(Path(target), **options)
