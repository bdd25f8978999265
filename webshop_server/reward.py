"""The score of a purchase: type, attributes, options and price."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from .records import Goal, Product, Reward

# (id of the product, its title) -> the nouns of the title, lower case, repeats kept.
NounFinder = Callable[[str, str], Sequence[str]]


def score(
    product: Product,
    goal: Goal,
    options: Mapping[str, str],
    price: float,
    *,
    profile: Literal["original", "clean"] = "clean",
    nouns: NounFinder | None = None,
) -> Reward:
    """Score the purchase of `product` with the chosen `options` (name -> value) at `price`."""
    raise NotImplementedError
