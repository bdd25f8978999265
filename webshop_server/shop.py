"""A shop: catalogue, goals and search under one profile; immutable, shared by its shoppers."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from webshop_server.data import bundled
from webshop_server.data.catalogue import Catalogue
from webshop_server.data.packed import PackedCatalogue, is_packed
from webshop_server.data.products import Product
from webshop_server.data.raw import read_catalogue
from webshop_server.errors import CatalogueError
from webshop_server.packing import search_index
from webshop_server.rules import reward
from webshop_server.rules.goals import Goals
from webshop_server.rules.nouns import NounFinder, from_file, rule
from webshop_server.rules.records import GoalKind, Profile, Reward, ShoppingGoal
from webshop_server.search.index import SearchIndex

_opening = threading.Lock()
_MADE_FROM: Mapping[GoalKind, str] = {
    "synthetic": "each `instruction` of items_ins_v2.json",
    "human": "items_human_ins.json",
}


@dataclass(frozen=True, slots=True)
class Shop:
    """A shop, which all its shoppers share.

    Attributes:
        catalogue: the products.
        goals: the tasks of shoppers.
        index: finds products by words of their texts.
        profile: "clean" or "original", see docs/webshop.md.
        show_attributes: whether products have the tab "Attributes".
        nouns: finds the nouns of titles for the reward.
    """

    catalogue: Catalogue
    goals: Goals
    index: SearchIndex
    profile: Profile = "clean"
    show_attributes: bool = False
    nouns: NounFinder = rule

    @classmethod
    def open(
        cls,
        data: str | Path | None = None,
        *,
        goals: GoalKind = "synthetic",
        profile: Profile = "clean",
        difficulty: str = "default",
        show_attributes: bool = False,
        title_nouns: str | Path | None = None,
    ) -> Shop:
        """Open a shop; a process opens each once and shares it.

        Args:
            data: None or "bundled" for the built-in catalogue, a directory with the original's raw
                files, or a packed catalogue.
            goals: "synthetic" or "human".
            profile: "clean" or "original".
            difficulty: of the built-in catalogue.
            show_attributes: whether products have the tab "Attributes".
            title_nouns: a file of nouns that a tagger found, see `nouns.from_file`.

        Raises:
            CatalogueError: the data is missing or broken, or has no goals of this kind.
        """
        source = None if data is None else str(data)
        found = None if title_nouns is None else str(title_nouns)
        with _opening:
            return _open(source, goals, profile, difficulty, show_attributes, found)

    def score(self, product: Product, goal: ShoppingGoal, options: Mapping[str, str]) -> Reward:
        """Score a purchase."""
        return reward.score(
            product,
            goal,
            options,
            product.purchase_price,
            profile=self.profile,
            nouns=self.nouns,
        )

    def __deepcopy__(self, memo: dict[int, object]) -> Shop:
        """Return the shop itself, because it never changes."""
        return self


@lru_cache(maxsize=4)
def _open(
    data: str | None,
    goals: GoalKind,
    profile: Profile,
    difficulty: str,
    show_attributes: bool,
    title_nouns: str | None,
) -> Shop:
    catalogue, index = _stock(data, difficulty)
    made = Goals.build(catalogue, goals, profile)
    if not made:
        raise CatalogueError(
            f"{data} holds no {goals} goals; they are made from {_MADE_FROM[goals]} beside the "
            "file of products"
        )
    finder = rule if title_nouns is None else from_file(title_nouns)
    return Shop(catalogue, made, index, profile, show_attributes, finder)


@lru_cache(maxsize=2)
def _stock(data: str | None, difficulty: str) -> tuple[Catalogue, SearchIndex]:
    catalogue = open_catalogue(data, difficulty)
    return catalogue, search_index(catalogue)


def open_catalogue(data: str | Path | None = None, difficulty: str = "default") -> Catalogue:
    """Open a catalogue; arguments and errors are those of `Shop.open`."""
    if data is None or data == "bundled":
        return bundled.catalogue(difficulty)
    path = Path(data)
    # Not Path.exists, which raises for a name that is longer than a file's may be.
    if not os.path.exists(path):
        raise CatalogueError(
            f"no catalogue at {path!s:.200}; expected 'bundled', a packed catalogue, or a "
            "directory with the raw files of WebShop"
        )
    return PackedCatalogue(path) if is_packed(path) else read_catalogue(path)
