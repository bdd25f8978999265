"""Generalised advantage estimation (arXiv 1506.02438) over the steps of an episode, as PPO uses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.options import Fraction
from proxmo.credit.registry import Parts, method
from proxmo.credit.returns import step_returns
from proxmo.credit.rows import Rows
from proxmo.credit.statistics import relative_to_group

Floats = NDArray[np.float64]


@method("gae")
@method("ppo")
def gae(rows: Rows, *, value: Any, lam: Fraction = 0.95, whiten: bool = True) -> Parts:
    """A_t = sum over k >= t of (gamma lam)^(k-t) delta_k, delta_t = r_t + gamma V_{t+1} - V_t.

    Without whitening, V_t + A_t is the target of the value head. Values are those of the rewards as
    they are: `reward_scale` has no part in it.

    Args:
        rows: the steps.
        value: (S,) V_t of the caller's rows, in their order.
        lam: trade of bias (0) against variance (1), in [0, 1].
        whiten: normalise the advantages over the batch.

    Raises:
        DataError: values of another length, or not finite.
    """
    advantage = td_advantages(rows, rows.reward, rows.column("value", value), lam)
    if whiten:
        advantage = relative_to_group(advantage, np.zeros(len(advantage), np.int64), "zscore")
    return Parts(episode=np.zeros_like(advantage), step=advantage)


def td_advantages(rows: Rows, reward: Floats, value: Floats, lam: float) -> Floats:
    """A_t = sum over k >= t of (gamma lam)^(k-t) delta_k, delta_t = r_t + gamma V_{t+1} - V_t.

    V after the last step of an episode is 0 where the episode ended by itself. Where a limit cut it
    off, it is the V of the episode's last state: the state reached is not in the batch, and the
    last one is the nearest to it. A gap before the next step discounts its V by the width, as it
    does in G_t.

    Args:
        rows: the steps.
        reward: (S,) r_t.
        value: (S,) V_t.
        lam: trade of bias (0) against variance (1), in [0, 1].

    Returns:
        (S,) advantages A_t.
    """
    following = rows.gamma * np.where(rows.episode_truncated[rows.episode], value, 0.0)
    goes_on = np.flatnonzero(rows.episode[1:] == rows.episode[:-1])
    width = np.diff(rows.step)[goes_on]
    following[goes_on] = np.float_power(rows.gamma, width) * value[goes_on + 1]
    return step_returns(reward + following - value, rows.episode, rows.step, rows.gamma * lam)
