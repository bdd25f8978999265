"""The goals of a catalogue, in an order that never changes."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Sequence
from dataclasses import astuple
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from webshop_server.data.catalogue import Catalogue
from webshop_server.data.lazy_sequence import LazySequence
from webshop_server.data.products import Entry, Wish
from webshop_server.errors import UnknownGoalError
from webshop_server.rules.goal_rows import CLEAN_SPLITS, NO_LIMIT, collect
from webshop_server.rules.records import GoalKind, Profile, ShoppingGoal, Split

# The ends of test and validation in the literature; the rest is for training.
_TEST, _VALIDATION = 500, 1500


class Goals(LazySequence[ShoppingGoal]):
    """All goals of a kind; each is made on access from arrays of places and limits.

    The number of a goal is its place in the literature's order (the integer session id of the
    original); its id, "synthetic/0000012", holds that number. Both profiles share numbers and ids;
    they differ in their splits.
    """

    def __init__(
        self, catalogue: Catalogue, kind: GoalKind, profile: Profile, rows: NDArray[np.void]
    ) -> None:
        """Make goals of `rows`, see `goal_rows.ROW`; most callers use `Goals.build`."""
        self.catalogue = catalogue
        self.kind = kind
        self.noun = f"{kind} goal"
        self.profile = profile
        self._rows = rows

    @classmethod
    def build(
        cls, catalogue: Catalogue, kind: GoalKind = "synthetic", profile: Profile = "original"
    ) -> Goals:
        """Make all goals of a catalogue, whose seed draws the price limits.

        A packed catalogue holds them already.
        """
        rows = catalogue.packed_array(f"goals-{kind}")
        if rows is None:
            rows = collect(catalogue.entries, kind, catalogue.seed)
        return cls(catalogue, kind, profile, rows)

    def __len__(self) -> int:
        """Return the number of goals."""
        return len(self._rows)

    def get(self, goal_id: str) -> ShoppingGoal:
        """Return a goal by its id; raises `UnknownGoalError`."""
        return self[self.index_of(goal_id)]

    def index_of(self, goal_id: str) -> int:
        """Return the number of a goal; raises `UnknownGoalError`."""
        kind, _, digits = goal_id.partition("/")
        if digits.isdecimal() and len(digits) < 10 and int(digits) < len(self):
            number = int(digits)
            if goal_id == self.id_of(number):
                return number
        last = f"{self.id_of(0)} to {self.id_of(len(self) - 1)}" if len(self) else "none"
        raise UnknownGoalError(f"unknown goal {goal_id[:100]!r}; there are: {last}")

    def id_of(self, index: int) -> str:
        """Return the id of the goal with this number, without making the goal."""
        return f"{self.kind}/{index:07d}"

    def split(self, name: Split) -> Sequence[int]:
        """Return the numbers of the goals of a split, ascending.

        original: test = the first 500, validation = the next 1,000, train = the rest.
        clean: by product (about 80 / 10 / 10 %, by the hash of its id), and only goals that a
        shopper can meet in full.

        Raises:
            UnknownGoalError: no split has this name.
        """
        if name not in CLEAN_SPLITS:
            raise UnknownGoalError(
                f"unknown split {str(name)[:50]!r}; known: {', '.join(CLEAN_SPLITS)}"
            )
        if self.profile == "clean":
            numbers = np.flatnonzero(self._rows["clean"] == CLEAN_SPLITS[name])
            return array("i", numbers.astype(np.int32).tobytes())
        ends = {
            "test": range(_TEST),
            "validation": range(_TEST, _VALIDATION),
            "train": range(_VALIDATION, len(self)),
        }
        return range(len(self))[ends[name].start : ends[name].stop]

    @cached_property
    def manifest_hash(self) -> str:
        """Hash of all goals, of the catalogue and of the profile."""
        header = f"{self.catalogue.manifest_hash} {self.kind} {self.profile}\n"
        return hashlib.sha256(header.encode() + self._rows.tobytes()).hexdigest()

    def _make(self, index: int) -> ShoppingGoal:
        row = self._rows[index]
        entry = self.catalogue.entries[int(row["place"])]
        product, variant, limit = entry.product, int(row["variant"]), float(row["limit"])
        wish, options = (
            _synthetic(entry, variant) if self.kind == "synthetic" else _human(entry, variant)
        )
        return ShoppingGoal(
            goal_id=self.id_of(index),
            asin=product.asin,
            instruction=_instruction(wish, options, self.kind) + _limit_text(limit),
            attributes=wish.attributes,
            options=options,
            price_upper=limit,
            weight=float(row["weight"]),
            kind=self.kind,
            title=product.title,
            category=product.category,
            query=product.query,
            product_category=product.product_category,
        )


def content_hash(goal: ShoppingGoal) -> str:
    """Return the hash of a goal's content, which does not depend on its number."""
    _, *asked = astuple(goal)
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()


def _synthetic(entry: Entry, variant: int) -> tuple[Wish, tuple[tuple[str, str], ...]]:
    """Return choice number `variant` of all options; the last option changes fastest."""
    assert entry.synthetic is not None
    picks = []
    for name, values in sorted(entry.product.options.items(), reverse=True):
        variant, place = divmod(variant, len(values))
        picks.append((name, values[place]))
    return entry.synthetic, tuple(reversed(picks))


def _human(entry: Entry, variant: int) -> tuple[Wish, tuple[tuple[str, str], ...]]:
    wish = entry.human[variant]
    return wish, tuple(("", value) for value in wish.options)


def _instruction(wish: Wish, options: tuple[tuple[str, str], ...], kind: GoalKind) -> str:
    """Return the text without the limit; only human instructions lose the dots around them."""
    if kind == "human":
        return wish.text.strip(".")
    asked = ", and ".join(f"{name}: {value}" for name, value in options)
    return f"{wish.text} with {asked}" if asked else wish.text


def _limit_text(limit: float) -> str:
    return "" if limit >= NO_LIMIT else f", and price lower than {limit:.2f} dollars"
