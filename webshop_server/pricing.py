"""Prices: how a price text is read, what a range costs, which limits an instruction names."""

from __future__ import annotations

import random
import re

from .errors import CatalogueError

# What a product without a price costs, and the limit of a goal whose text names none.
DEFAULT_PRICE = 100.0
NO_LIMIT = 1_000_000.0

_LIMITS = tuple(10.0 * n for n in range(1, 100))
_CANDIDATES = 4


def parse_price(text: str | None) -> tuple[tuple[float, ...], str]:
    """Read a price text such as "$12.99 - $15.49".

    Returns:
        The numbers (one, or the two ends of a range, in the order written) and the price tag.

    Raises:
        CatalogueError: the text holds no dollar sign, or what follows one is not a number.
    """
    if not text:
        return (DEFAULT_PRICE,), f"${DEFAULT_PRICE}"
    try:
        numbers = tuple(float(re.sub(r"[^\d.]", "", part)) for part in text.split("$")[1:])
    except ValueError:
        numbers = ()
    if not numbers:
        raise CatalogueError(
            f"price {text[:100]!r} cannot be read; expected a text such as '$12.99', "
            "'$12.99 - $15.49', or nothing"
        )
    return numbers[:2], " to ".join(f"${number}" for number in numbers[:2])


def purchase_price(pricing: tuple[float, ...], rng: random.Random) -> float:
    """Return what a product costs; a range draws a number from `rng`."""
    return pricing[0] if len(pricing) == 1 else rng.uniform(*pricing)


def limit_candidates(price: float) -> tuple[float, ...]:
    """Return the limits an instruction may name: the next four multiples of 10 below 1000."""
    return tuple(limit for limit in _LIMITS if limit > price)[:_CANDIDATES]


def draw_limit(price: float, rng: random.Random) -> float:
    """Draw a limit: the larger of two candidates, `NO_LIMIT` where there are fewer than two."""
    candidates = limit_candidates(price)
    return max(rng.sample(candidates, 2)) if len(candidates) > 1 else NO_LIMIT


def limit_text(limit: float) -> str:
    """Return what an instruction says about its limit, with the comma before it."""
    return "" if limit >= NO_LIMIT else f", and price lower than {limit:.2f} dollars"
