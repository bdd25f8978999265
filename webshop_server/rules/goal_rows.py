"""The rows of goals: product, choice of options and price limit of each.

Draws random numbers in the order of the original: one for each price range of the catalogue, two
for the limit of each product (synthetic) or instruction (human); then shuffles the goals with
another seed.
"""

from __future__ import annotations

import hashlib
import random
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import product as choices
from math import prod

import numpy as np
from numpy.typing import NDArray

from webshop_server.data.products import Entry, Product, Wish
from webshop_server.errors import CatalogueError
from webshop_server.rules.records import GoalKind
from webshop_server.rules.reward import attribute_matches, option_matches

ROW = np.dtype(
    [
        ("place", "<i4"),  # of the product in the catalogue
        ("variant", "<i4"),  # which choice of all options, or which instruction
        ("limit", "<f4"),  # exact: a multiple of 10 below 1000, or a million
        ("weight", "<f8"),
        ("clean", "u1"),  # split in profile "clean"; 0 where no purchase can score 1
    ]
)
CLEAN_SPLITS = {"train": 1, "validation": 2, "test": 3}

_SHUFFLE_SEED = 233
# The limit of a goal whose instruction names none, the limits that one may name, and how many of
# them are drawn from.
NO_LIMIT = 1_000_000.0
_LIMITS = tuple(10.0 * n for n in range(1, 100))
_CANDIDATES = 4
# More goals mean a broken catalogue, with a product whose options multiply without end.
_MOST_GOALS = 1 << 27


def collect(entries: Iterable[Entry], kind: GoalKind, seed: int) -> NDArray[np.void]:
    """Make the rows of all goals; `seed` is the one the purchase prices were drawn with."""
    rows = RowCollector(kind)
    for entry in entries:
        rows.add(entry)
    return rows.finish(seed)


class RowCollector:
    """Collects the goals of a stream of entries; keeps a few numbers for each product."""

    def __init__(self, kind: GoalKind) -> None:
        self.kind = kind
        self._entries = self._ranges = 0
        # One element each for every draw of a limit:
        self._places, self._first, self._counts = array("i"), array("i"), array("q")
        self._prices = array("d")
        self._attributes: list[tuple[str, ...]] = []
        self._goals_with: Counter[str] = Counter()
        # One element for every goal.
        self._clean = bytearray()

    def add(self, entry: Entry) -> None:
        """Take the next entry of the catalogue."""
        product = entry.product
        if self.kind == "synthetic" and entry.synthetic is not None:
            wish = entry.synthetic
            count = prod(len(values) for values in product.options.values())
            if len(self._clean) + count > _MOST_GOALS:
                raise CatalogueError(
                    f"product {product.asin}: its options make {count} goals; "
                    f"expected no more than {_MOST_GOALS} in a catalogue"
                )
            self._add(product, 0, count, wish.attributes)
            self._clean.extend(_clean_synthetic(product, wish))
        elif self.kind == "human":
            for variant, wish in enumerate(entry.human):
                self._add(product, variant, 1, wish.attributes)
                self._clean.append(_clean_human(product, wish))
        self._ranges += len(product.pricing) > 1
        self._entries += 1

    def _add(self, product: Product, first: int, count: int, attributes: tuple[str, ...]) -> None:
        self._places.append(self._entries)
        self._first.append(first)
        self._counts.append(count)
        self._prices.append(product.purchase_price)
        if self.kind == "synthetic":
            self._attributes.append(attributes)
            for name in attributes:
                self._goals_with[name] += count

    def finish(self, seed: int) -> NDArray[np.void]:
        """Draw the limits and return the rows in their final order, (number of goals,)."""
        rng = random.Random(seed)
        for _ in range(self._ranges):
            rng.random()
        limits = np.array([draw_limit(price, rng) for price in self._prices])
        counts = np.array(self._counts, dtype=np.int64)
        rows = np.zeros(int(counts.sum()), dtype=ROW)
        starts = np.cumsum(counts) - counts
        rows["place"] = np.repeat(np.array(self._places), counts)
        rows["variant"] = np.repeat(np.array(self._first) - starts, counts) + np.arange(len(rows))
        rows["limit"] = np.repeat(limits, counts)
        rows["weight"] = np.repeat(self._weights(), counts)
        rows["clean"] = np.frombuffer(self._clean, dtype=np.uint8)
        order = list(range(len(rows)))
        random.Random(_SHUFFLE_SEED).shuffle(order)
        return rows[order]

    def _weights(self) -> NDArray[np.float64]:
        """Weigh synthetic goals by the rarity of their attributes: mean of 1 / (goals with it)."""
        if self.kind == "human":
            return np.ones(len(self._places))
        rarity = {name: 1.0 / max(count, 1) for name, count in self._goals_with.items()}
        return np.array(
            [sum(rarity[name] for name in names) / max(len(names), 1) for names in self._attributes]
        )


def _clean_synthetic(product: Product, wish: Wish) -> Iterator[int]:
    """Yield the split of each choice of options, 0 where a shopper could not make it."""
    split = _split(product.asin) if _offers(product, wish) else 0
    options = sorted(product.options.items())
    if not split:
        return iter(bytes(prod(len(values) for _, values in options)))
    free = [[_can_choose(value) for value in values] for _, values in options]
    return (split if all(choice) else 0 for choice in choices(*free))


def _clean_human(product: Product, wish: Wish) -> int:
    """Return the split of a crowd worker's goal, 0 where no choice of options meets it."""
    if not _offers(product, wish):
        return 0
    # For each option, the sets of wanted values that its values meet; most values meet none.
    met = [
        {
            frozenset(n for n, wanted in enumerate(wish.options) if _meets(value, wanted))
            for value in values
            if _can_choose(value)
        }
        or {frozenset()}
        for values in product.options.values()
    ]
    everything = frozenset(range(len(wish.options)))
    possible = any(frozenset().union(*choice) == everything for choice in choices(*met))
    return _split(product.asin) if possible else 0


def limit_candidates(price: float) -> tuple[float, ...]:
    """Return the limits an instruction may name: the next four multiples of 10 below 1000."""
    return tuple(limit for limit in _LIMITS if limit > price)[:_CANDIDATES]


def draw_limit(price: float, rng: random.Random) -> float:
    """Draw a limit: the larger of two candidates, `NO_LIMIT` where there are fewer than two."""
    candidates = limit_candidates(price)
    return max(rng.sample(candidates, 2)) if len(candidates) > 1 else NO_LIMIT


def _split(asin: str) -> int:
    """Return the split of a product by the hash of its id, the same in every catalogue."""
    digest = hashlib.sha256(asin.encode("utf-8", "surrogatepass")).digest()
    tenth = int.from_bytes(digest[:8], "big") % 10
    return CLEAN_SPLITS[{0: "test", 1: "validation"}.get(tenth, "train")]


def _offers(product: Product, wish: Wish) -> bool:
    return attribute_matches(product, wish.attributes) == len(wish.attributes)


def _can_choose(value: str) -> bool:
    """Return whether the value has a label to click, see `pages.option_labels`."""
    return bool(value.strip())


def _meets(value: str, wanted: str) -> bool:
    return option_matches((value,), (("", wanted),), "clean") == 1
