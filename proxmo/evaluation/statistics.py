"""Intervals of measured rates, and tests whether two of them differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, mean, stdev
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# Enough that the ends of a 95 % interval are steady to about a tenth of its width.
RESAMPLES = 10_000
# Outside each end of a 95 % interval.
_TAIL = (1.0 - 0.95) / 2.0
_Z = NormalDist().inv_cdf(1.0 - _TAIL)


def wilson_interval(wins: float, n: int) -> tuple[float, float]:
    """Returns Wilson's 95 % score interval of a success rate.

    With p = wins / n and z the 97.5 % quantile of the normal distribution:

        (p + z^2 / 2n  -+  z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)

    It stays inside [0, 1] and keeps its coverage for few episodes and for rates near 0 and 1, where
    p -+ z sqrt(p (1 - p) / n) would claim certainty. Source: E. B. Wilson, JASA 22 (1927) 209-212.

    Args:
        wins: Successes, 0..n; a task that was played several times counts with its mean.
        n: Independent tasks; 0 gives (0, 1), since nothing is known.

    Raises:
        ValueError: An argument is outside its range.
    """
    if not 0 <= wins <= n:
        raise ValueError(f"got {wins} wins in {n} episodes, expected 0 <= wins <= n")
    if n == 0:
        return 0.0, 1.0
    rate, spread = wins / n, _Z * _Z / n
    centre = rate + spread / 2.0
    half = _Z * math.sqrt(rate * (1.0 - rate) / n + spread / (4.0 * n))
    # Exactly 0 and 1 at the ends, where rounding would leave 1e-17.
    low = 0.0 if wins == 0 else (centre - half) / (1.0 + spread)
    high = 1.0 if wins == n else (centre + half) / (1.0 + spread)
    return low, high


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """Returns Student's 95 % interval of a mean: mean -+ t sd / sqrt(n), with the unbiased sd.

    Raises:
        ValueError: There are fewer than two independent measurements.
    """
    n = len(values)
    if n < 2:
        raise ValueError(f"got {n} values, expected at least 2: one says nothing of their spread")
    from scipy.special import stdtrit

    half = float(stdtrit(n - 1, 1.0 - _TAIL)) * stdev(values) / math.sqrt(n)
    centre = mean(values)
    return centre - half, centre + half


def pass_at_k(n: int, wins: int, k: int) -> float:
    """Returns the unbiased estimate that at least one of k attempts at a task succeeds.

    1 - C(n - wins, k) / C(n, k) of n independent attempts. Source: arXiv 2107.03374, equation 1.

    Raises:
        ValueError: Unless 0 <= wins <= n and 1 <= k <= n.
    """
    if not (0 <= wins <= n and 1 <= k <= n):
        raise ValueError(f"got n={n}, wins={wins}, k={k}; expected wins in 0..n and k in 1..n")
    return 1.0 - math.comb(n - wins, k) / math.comb(n, k)


def mcnemar(only_first: int, only_second: int) -> float:
    """Returns the exact two-sided p-value that two paired success rates are equal.

    Of the n pairs in which one side won and the other did not, each side would win half: p is twice
    the smaller binomial tail, at most 1. Source: Q. McNemar, Psychometrika 12 (1947) 153-157.
    """
    from scipy.stats import binomtest

    n = only_first + only_second
    return float(binomtest(only_first, n).pvalue) if n else 1.0


def bootstrap_interval(values: ArrayLike, rng: np.random.Generator) -> tuple[float, float]:
    """Returns the 95 % percentile bootstrap interval of a mean.

    Args:
        values: (n,) independent measurements, at least one, for example differences of pairs.
        rng: Draws the resamples.

    Raises:
        ValueError: There are no values.
    """
    measured = np.asarray(values, dtype=float)
    n = measured.size
    if n == 0:
        raise ValueError("got no values, expected at least one")
    means = [measured[rng.integers(n, size=n)].mean() for _ in range(RESAMPLES)]
    low, high = np.quantile(means, [_TAIL, 1.0 - _TAIL])
    return float(low), float(high)
