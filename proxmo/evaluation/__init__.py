"""Evaluation on fixed panels of tasks."""

from proxmo.evaluation.panels import Panel, make_panel, open_panel, write_panel
from proxmo.evaluation.players import Player, checkpoint_player, policy_player
from proxmo.evaluation.runner import (
    checkpoint_panel,
    evaluate,
    evaluate_agent,
    evaluate_checkpoint,
    evaluate_policy,
)
from proxmo.evaluation.summary import Evaluation, SeedSpread, TypeResult

__all__ = [
    "Evaluation",
    "Panel",
    "Player",
    "SeedSpread",
    "TypeResult",
    "checkpoint_panel",
    "checkpoint_player",
    "evaluate",
    "evaluate_agent",
    "evaluate_checkpoint",
    "evaluate_policy",
    "make_panel",
    "open_panel",
    "policy_player",
    "write_panel",
]
