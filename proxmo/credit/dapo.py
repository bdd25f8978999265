"""DAPO (arXiv 2503.14476): GRPO's advantage; its novelties are outside the credit.

Clip-higher and the token mean are settings of the loss, dynamic sampling (groups without variance
are replaced) and the overlong penalty belong to the rollout.
"""

from __future__ import annotations

from proxmo.credit.grpo import grpo
from proxmo.credit.registry import Parts, method
from proxmo.credit.rows import Rows


@method("dapo")
def dapo(rows: Rows) -> Parts:
    """A_i = (R_i - mean R) / (std R + eps)."""
    return grpo(rows)
