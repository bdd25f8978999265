"""How sure a measured success rate is."""

from __future__ import annotations

import math
from statistics import NormalDist


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


def _tail(confidence: float) -> float:
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence is {confidence}, expected a number between 0 and 1")
    return (1.0 - confidence) / 2.0
