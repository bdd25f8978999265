"""How sure a measured number is: intervals for success rates and for means."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# Draws held in memory at once (8 bytes each).
_CHUNK_DRAWS = 2_000_000


def wilson_interval(wins: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Returns Wilson's score interval of a success rate.

    With p = wins / n and z the two-sided normal quantile of the confidence:

        (p + z^2 / 2n  -+  z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)

    It stays inside [0, 1] and keeps its coverage for few episodes and for rates near 0 and 1, where
    p -+ z sqrt(p (1 - p) / n) would claim certainty. Source: E. B. Wilson, JASA 22 (1927) 209-212.

    Args:
        wins: Successes, 0..n.
        n: Independent episodes; 0 gives (0, 1), since nothing is known.
        confidence: Coverage, strictly between 0 and 1.

    Raises:
        ValueError: An argument is outside its range.
    """
    if not 0 <= wins <= n:
        raise ValueError(f"got {wins} wins in {n} episodes, expected 0 <= wins <= n")
    tail = _tail(confidence)
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(1.0 - tail)
    rate, spread = wins / n, z * z / n
    centre = rate + spread / 2.0
    half = z * math.sqrt(rate * (1.0 - rate) / n + spread / (4.0 * n))
    # Exactly 0 and 1 at the ends, where rounding would leave 1e-17.
    low = 0.0 if wins == 0 else (centre - half) / (1.0 + spread)
    high = 1.0 if wins == n else (centre + half) / (1.0 + spread)
    return low, high


def bootstrap_interval(
    values: Sequence[float] | NDArray[np.float64],
    rng: np.random.Generator,
    confidence: float = 0.95,
    resamples: int = 10_000,
) -> tuple[float, float]:
    """Returns the percentile bootstrap interval of a mean (scores, returns, episode lengths).

    Draws `resamples` times as many values as there are, with replacement, and takes the quantiles
    of the means. One value says nothing of the spread: the interval is then that value.

    Args:
        values: (E,) finite numbers, one per independent episode; none gives (-inf, inf).
        rng: The caller's generator; equal generators give equal intervals.
        confidence: Coverage, strictly between 0 and 1.
        resamples: How many means are drawn.

    Raises:
        ValueError: An argument is outside its range, or a value is not finite.
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or not np.isfinite(sample).all():
        raise ValueError(f"expected a row of finite numbers, got shape {sample.shape}: {sample!r}")
    if resamples < 1:
        raise ValueError(f"got {resamples} resamples, expected at least 1")
    tail = _tail(confidence)
    if not len(sample):
        return -math.inf, math.inf
    rows = max(1, _CHUNK_DRAWS // len(sample))
    means = [
        sample[rng.integers(len(sample), size=(min(rows, resamples - done), len(sample)))].mean(1)
        for done in range(0, resamples, rows)
    ]
    low, high = np.quantile(np.concatenate(means), [tail, 1.0 - tail])
    return float(low), float(high)


@dataclass(frozen=True, slots=True)
class Proportion:
    """So many wins in so many episodes."""

    wins: int
    n: int

    @property
    def rate(self) -> float:
        """Success rate; NaN without episodes."""
        return self.wins / self.n if self.n else math.nan

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Wilson's interval of the rate."""
        return wilson_interval(self.wins, self.n, confidence)

    def __str__(self) -> str:
        """For example `62.5 % [30.6, 86.3] (5/8)`, the 95 % interval in brackets."""
        low, high = self.interval()
        rate = f"{100 * self.rate:.1f} %" if self.n else "-"
        return f"{rate} [{100 * low:.1f}, {100 * high:.1f}] ({self.wins}/{self.n})"


def _tail(confidence: float) -> float:
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence is {confidence}, expected a number between 0 and 1")
    return (1.0 - confidence) / 2.0
