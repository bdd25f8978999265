"""REINFORCE++ (arXiv 2501.03262): no groups, returns normalised over the whole batch."""

from __future__ import annotations

import numpy as np

from proxmo.credit.registry import Parts, method
from proxmo.credit.rows import Rows
from proxmo.credit.statistics import relative_to_group


@method("reinforce++")
def reinforce_pp(rows: Rows, *, baseline: bool = False) -> Parts:
    """A = (x - mean) / (std + eps) over the steps of the batch, x the return of the episode.

    The mean is over steps because each step is a training sample: the samples then have mean 0.
    The paper's KL penalty inside the return is the trainer's to subtract from the rewards.

    Args:
        rows: the steps.
        baseline: subtract the mean return of the group first (the paper's "baseline" variant).
    """
    value, scale = rows.episode_return, rows.episode_scale
    if baseline:
        value = relative_to_group(value, rows.episode_group, "mean", scale=scale)
    whole_batch = np.zeros(len(rows.reward), np.int64)
    advantage = relative_to_group(
        value[rows.episode], whole_batch, "zscore", scale=scale[rows.episode]
    )
    return Parts(episode=advantage, step=np.zeros(len(rows.reward)))
