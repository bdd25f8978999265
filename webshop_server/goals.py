"""Goals: what shoppers are asked to buy, made from a catalogue in an order that never changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from .catalogue import Catalogue
from .records import Goal

Kind = Literal["synthetic", "human"]
Profile = Literal["original", "clean"]
Split = Literal["train", "validation", "test"]


class Goals(Sequence[Goal]):
    """All goals of a kind; a goal is made when it is asked for, from arrays of places and limits.

    The number of a goal is its place in the literature's order (the integer session id of the
    original); its id, "synthetic/0000012", holds that number. Both profiles share numbers and ids.
    """

    def __init__(self, catalogue: Catalogue, kind: Kind, profile: Profile, rows: np.ndarray) -> None:
        self.catalogue = catalogue
        self.kind = kind
        self.profile = profile
        self._rows = rows

    @classmethod
    def build(
        cls, catalogue: Catalogue, kind: Kind = "synthetic", profile: Profile = "original"
    ) -> Goals:
        """Make all goals of a catalogue; its seed draws the price limits."""
        raise NotImplementedError

    def __len__(self) -> int:
        """Return the number of goals."""
        return len(self._rows)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        """Return the goal with this number."""
        raise NotImplementedError

    def get(self, goal_id: str) -> Goal:
        """Return a goal by its id; raises `UnknownGoalError`."""
        return self[self.index_of(goal_id)]

    def index_of(self, goal_id: str) -> int:
        """Return the number of a goal; raises `UnknownGoalError`."""
        raise NotImplementedError

    def id_of(self, index: int) -> str:
        """Return the id of the goal with this number, without making the goal."""
        return f"{self.kind}/{index:07d}"

    def split(self, name: Split) -> Sequence[int]:
        """Return the numbers of the goals of a split, ascending.

        original: test = the first 500, validation = the next 1,000, train = the rest.
        clean: by product (about 80 / 10 / 10 %), and only goals that a shopper can meet in full.
        """
        raise NotImplementedError

    @property
    def manifest_hash(self) -> str:
        """Hash of all goals, of the catalogue and of the profile."""
        raise NotImplementedError


def content_hash(goal: Goal) -> str:
    """Return the hash of what a goal asks for, whatever its number is."""
    raise NotImplementedError
