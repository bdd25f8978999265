"""GRPO (arXiv 2402.03300): an episode's return against the other episodes of its task."""

from __future__ import annotations

import numpy as np

from proxmo.credit.options import Norm
from proxmo.credit.registry import Parts, method
from proxmo.credit.rows import Rows
from proxmo.credit.statistics import relative_to_group


@method("grpo")
def grpo(rows: Rows, *, norm: Norm = "zscore") -> Parts:
    """A_i = (R_i - mean R) / (std R + eps), the same for every step of the episode.

    Args:
        rows: the steps.
        norm: "zscore", or "mean" to leave out the division.
    """
    relative = relative_to_group(
        rows.episode_return, rows.episode_group, norm, scale=rows.episode_scale
    )
    return Parts(episode=relative[rows.episode], step=np.zeros(len(rows.reward)))
