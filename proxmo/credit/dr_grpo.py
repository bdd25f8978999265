"""Dr. GRPO (arXiv 2503.20783): GRPO without the division that favours easy and hard tasks."""

from __future__ import annotations

import numpy as np

from proxmo.credit.registry import Parts, method
from proxmo.credit.rows import Rows
from proxmo.credit.statistics import relative_to_group


@method("dr_grpo")
def dr_grpo(rows: Rows) -> Parts:
    """A_i = R_i - mean R of the group. Its other half, a constant token divisor, is in the loss."""
    relative = relative_to_group(
        rows.episode_return, rows.episode_group, "mean", scale=rows.episode_scale
    )
    return Parts(episode=relative[rows.episode], step=np.zeros(len(rows.reward)))
