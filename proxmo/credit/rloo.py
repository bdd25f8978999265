"""RLOO (Kool et al. 2019, arXiv 2402.14740): an episode against the mean of the others."""

from __future__ import annotations

import numpy as np

from proxmo.credit.registry import Parts, method
from proxmo.credit.rows import Rows
from proxmo.credit.statistics import relative_to_group


@method("rloo")
def rloo(rows: Rows) -> Parts:
    """A_i = R_i - mean of the other N-1 returns = N/(N-1) (R_i - mean R); 0 in a group of one."""
    relative = relative_to_group(
        rows.episode_return, rows.episode_group, "mean", scale=rows.episode_scale
    )
    size = np.bincount(rows.episode_group)[rows.episode_group]
    relative *= size / np.maximum(size - 1, 1)
    return Parts(episode=relative[rows.episode], step=np.zeros(len(rows.reward)))
