"""Price limits: which ones an instruction may name, and how it names them."""

from __future__ import annotations

import random

# The limit of a goal whose instruction names none.
NO_LIMIT = 1_000_000.0

_LIMITS = tuple(10.0 * n for n in range(1, 100))
_CANDIDATES = 4


def limit_candidates(price: float) -> tuple[float, ...]:
    """Return the limits an instruction may name: the next four multiples of 10 below 1000."""
    return tuple(limit for limit in _LIMITS if limit > price)[:_CANDIDATES]


def draw_limit(price: float, rng: random.Random) -> float:
    """Draw a limit: the larger of two candidates, `NO_LIMIT` where there are fewer than two."""
    candidates = limit_candidates(price)
    return max(rng.sample(candidates, 2)) if len(candidates) > 1 else NO_LIMIT


def limit_text(limit: float) -> str:
    """Return the words for a limit in an instruction, with the comma before them."""
    return "" if limit >= NO_LIMIT else f", and price lower than {limit:.2f} dollars"
