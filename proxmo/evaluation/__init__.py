"""Evaluation on fixed panels of tasks."""

from proxmo.evaluation.runner import (
    Evaluation,
    TypeResult,
    evaluate_agent,
    evaluate_checkpoint,
    evaluate_policy,
)

__all__ = ["Evaluation", "TypeResult", "evaluate_agent", "evaluate_checkpoint", "evaluate_policy"]
