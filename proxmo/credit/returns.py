"""Discounted step returns, without a loop over steps or episodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def step_returns(
    reward: NDArray[np.float64], episode: NDArray[np.int64], step: NDArray[Any], gamma: float
) -> NDArray[np.float64]:
    """G_t = sum over k >= t of gamma^(k-t) r_k, inside each episode.

    After pass n every row holds the sum over its next 2^n rows; the next pass adds the sum that
    starts 2^n rows further on, discounted by the distance. log2(longest episode) passes suffice.

    Args:
        reward: (S,) rewards, rows sorted by episode, then step.
        episode: (S,) episode of each row.
        step: (S,) step index, rising inside an episode; a gap discounts by its width.
        gamma: discount factor in [0, 1].

    Returns:
        (S,) step returns.
    """
    total = reward.astype(np.float64)
    shift = 1
    while shift < len(total):
        same = episode[shift:] == episode[:-shift]
        if not same.any():
            break
        distance = np.where(same, step[shift:] - step[:-shift], 1)
        tail = np.where(same, np.float_power(gamma, distance) * total[shift:], 0.0)
        # `tail` is complete before it is added: rows further on must still hold 2^n terms.
        total[:-shift] += tail
        shift *= 2
    return total
