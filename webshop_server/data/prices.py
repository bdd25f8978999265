"""Read price texts, and draw the price of a product with a price range."""

from __future__ import annotations

import random
import re

from webshop_server.errors import CatalogueError

# The price of a product that names none.
DEFAULT_PRICE = 100.0


def parse_price(text: str | None) -> tuple[tuple[float, ...], str]:
    """Read a price text such as "$12.99 - $15.49".

    Returns:
        The numbers (one, or the two ends of a range, in the order written) and the price tag.

    Raises:
        CatalogueError: the text holds no dollar sign, or no number after one.
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
    """Return what a product costs; draws a number from `rng` for a price range."""
    return pricing[0] if len(pricing) == 1 else rng.uniform(*pricing)
