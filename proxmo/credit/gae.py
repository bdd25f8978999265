"""Generalised advantage estimation (arXiv 1506.02438) over the steps of an episode, as PPO uses."""

from __future__ import annotations

from typing import Any

import numpy as np

from proxmo.credit.registry import Parts, method
from proxmo.credit.returns import step_returns
from proxmo.credit.rows import Rows
from proxmo.credit.statistics import relative_to_group
from proxmo.errors import ConfigError


@method("gae")
@method("ppo")
def gae(rows: Rows, *, value: Any, lam: float = 0.95, whiten: bool = True) -> Parts:
    """A_t = sum over k >= t of (gamma lam)^(k-t) delta_k, delta_t = r_t + gamma V_{t+1} - V_t.

    V after the last step of an episode is 0; a gap before the next step discounts its V by the
    width, as it does in G_t. The target of the value head is V_t + A_t without whitening.

    Args:
        rows: the steps.
        value: (S,) V_t of the caller's rows, in their order.
        lam: trade of bias (0) against variance (1), in [0, 1].
        whiten: normalise the advantages over the batch.

    Raises:
        ConfigError: lam out of range.
        DataError: values of another length, or not finite.
    """
    if not 0.0 <= lam <= 1.0:
        raise ConfigError(f"lam is {lam}; expected a number from 0 to 1")
    values = rows.column("value", value)
    following = np.zeros_like(values)
    goes_on = rows.episode[1:] == rows.episode[:-1]
    width = np.diff(rows.step)[goes_on]
    following[:-1][goes_on] = np.float_power(rows.gamma, width) * values[1:][goes_on]
    delta = rows.reward + following - values
    advantage = step_returns(delta, rows.episode, rows.step, rows.gamma * lam)
    if whiten:
        advantage = relative_to_group(advantage, np.zeros(len(advantage), np.int64), "zscore")
    return Parts(episode=np.zeros_like(advantage), step=advantage)
