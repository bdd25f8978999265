"""STEP (arXiv 2511.13091): learn from successes only, the more the rarer they are.

The paper's constants are not public to us: the plain form here is ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from proxmo.credit.registry import Parts, method
from proxmo.credit.rows import Rows
from proxmo.credit.statistics import group_mean
from proxmo.errors import DataError


@method("step")
def step(rows: Rows, *, success_rate: Any = None) -> Parts:
    """A_i = s_i (1 - p), the same for every step of a successful episode; failures give 0.

    Args:
        rows: the steps.
        success_rate: (S,) success rate p of the task of each of the caller's rows, for example
            smoothed over iterations; None takes the group's own rate in this batch.

    Raises:
        DataError: rates of another length or outside [0, 1].
    """
    if success_rate is None:
        rate = group_mean(rows.episode_success.astype(np.float64), rows.episode_group)[rows.group]
    else:
        rate = rows.column("success_rate", success_rate)
        if ((rate < 0) | (rate > 1)).any():
            raise DataError(
                f"success_rate goes from {rate.min():g} to {rate.max():g}; expected 0 to 1"
            )
    won = rows.episode_success[rows.episode]
    return Parts(episode=np.where(won, 1.0 - rate, 0.0), step=np.zeros(len(rows.reward)))
