"""The sampling rule of STEP (arXiv 2511.13091): harder tasks get more episodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proxmo.errors import ConfigError

Floats = NDArray[np.float64]


def smooth_success_rate(old: Floats, observed: Floats, momentum: float = 0.9) -> Floats:
    """Moving average of (T,) success rates over iterations; nan in `observed`: not played."""
    if not 0.0 <= momentum <= 1.0:
        raise ConfigError(f"momentum is {momentum}; expected a number from 0 to 1")
    played = ~np.isnan(observed)
    return np.where(played, momentum * old + (1 - momentum) * np.where(played, observed, 0.0), old)


def allot_episodes(success_rate: Floats, episodes: int) -> NDArray[np.int64]:
    """Divide an iteration's episodes among T tasks: one each, the rest in proportion to 1 - p.

    Args:
        success_rate: (T,) smoothed success rate p of each task.
        episodes: how many to divide, at least T.

    Returns:
        (T,) episodes per task, summing to `episodes`; what division leaves over goes to the largest
        remainders.

    Raises:
        ConfigError: fewer episodes than tasks, or no task.
    """
    tasks = len(success_rate)
    if not 0 < tasks <= episodes:
        raise ConfigError(f"{episodes} episodes for {tasks} tasks; expected at least one for each")
    hardness = 1.0 - np.clip(success_rate, 0.0, 1.0)
    if hardness.sum() == 0:
        hardness = np.ones(tasks)
    share = (episodes - tasks) * hardness / hardness.sum()
    whole = np.floor(share).astype(np.int64)
    left = episodes - tasks - int(whole.sum())
    whole[np.argsort(whole - share, kind="stable")[:left]] += 1
    return whole + 1
