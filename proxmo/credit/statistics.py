"""Means and deviations inside groups, exact where a group has nothing to compare."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo.errors import ConfigError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Added to a standard deviation before dividing by it, as in GRPO and GiGPO.
STD_EPS = 1e-6
# Values this close, relative to their size, are equal: sums of 50 float32 rewards differ so much.
ROUNDING = 1e-6


def group_sum(value: NDArray[Any], group: Ints, groups: int) -> Floats:
    """(groups,) sum of (N,) values, or number of flags, inside each group."""
    # bincount of nothing is an array of integers.
    return np.bincount(group, weights=value, minlength=groups).astype(np.float64)


def group_mean(value: Floats, group: Ints, weight: Floats | None = None) -> Floats:
    """(G,) mean of (N,) values inside each group, optionally weighted."""
    count = np.bincount(group, weights=weight)
    total = np.bincount(group, weights=value if weight is None else value * weight)
    return total / np.maximum(count, np.finfo(np.float64).tiny)


def relative_to_group(
    value: Floats,
    group: Ints,
    norm: str,
    *,
    scale: Floats | None = None,
    weight: Floats | None = None,
) -> Floats:
    """(x - mean) / (std + eps) ("zscore", unbiased std) or x - mean ("mean") inside each group.

    A group of one and a group whose values are equal within rounding give exactly 0.

    Args:
        value: (N,) values x.
        group: (N,) group of each value, 0 to G-1, each at least once.
        norm: "zscore" or "mean".
        scale: (N,) what rounding is relative to, |x| by default; for a sum, that of its absolute
            terms.
        weight: (N,) how often a value counts; once each by default.

    Returns:
        (N,) values relative to their group.

    Raises:
        ConfigError: norm is neither.
    """
    check_choice("norm", norm, ("zscore", "mean"))
    if not len(value):
        return value.copy()
    deviation = value - group_mean(value, group, weight)[group]
    deviation[without_variance(value, group, scale)[group]] = 0.0
    if norm == "mean":
        return deviation
    count = np.bincount(group, weights=weight)
    squares = deviation**2 if weight is None else deviation**2 * weight
    std = np.sqrt(np.bincount(group, weights=squares) / np.maximum(count - 1.0, 1.0))
    return deviation / (std[group] + STD_EPS)


def without_variance(value: Floats, group: Ints, scale: Floats | None = None) -> NDArray[np.bool_]:
    """(G,) true where all values of the group are equal within rounding; a group of one is."""
    groups = int(group.max()) + 1 if len(group) else 0
    low, high, size = np.full(groups, np.inf), np.full(groups, -np.inf), np.zeros(groups)
    np.minimum.at(low, group, value)
    np.maximum.at(high, group, value)
    np.maximum.at(size, group, np.abs(value) if scale is None else scale)
    return high - low <= ROUNDING * size


def check_choice(option: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise ConfigError unless the value of an option is one of its choices."""
    if value not in choices:
        raise ConfigError(f"{option} is {value!r}; expected one of {', '.join(choices)}")
