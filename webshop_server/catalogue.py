"""The catalogue: products in a fixed order, in memory or memory-mapped from a packed directory."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

import numpy as np
from numpy.typing import NDArray

from .entries import Entry, Wish, document, encode
from .errors import CatalogueError, UnknownProductError
from .records import Product

if TYPE_CHECKING:
    from .search.index import SearchIndex

# What a message quotes of a path.
_LONGEST = 200

__all__ = ["Catalogue", "Entry", "Wish", "document", "open_shop_data"]


class Catalogue(Sequence[Product]):
    """Products in the order of their files; immutable, and safe in threads and after a fork.

    Attributes:
        entries: the products and the wishes that goals are made from.
        seed: the one their purchase prices were drawn with; it draws the limits of goals, too.
    """

    def __init__(self, entries: Iterable[Entry], seed: int = 0) -> None:
        """Hold `entries`, whose products have different ids."""
        self.entries: Sequence[Entry] = tuple(entries)
        self.seed = seed

    @classmethod
    def read(cls, source: str | Path, *, limit: int | None = None, seed: int = 0) -> Catalogue:
        """Read the original's raw files.

        Args:
            source: their directory, or the file of products with the others beside it.
            limit: take only so many rows of the file of products.
            seed: of the purchase prices; 0 gives those the literature's recordings have.

        Raises:
            CatalogueError: a file is missing or broken; the text says where.
        """
        from .raw import read_entries

        return cls(read_entries(source, limit=limit, seed=seed), seed)

    @staticmethod
    def open(directory: str | Path) -> Catalogue:
        """Open a packed catalogue, memory-mapped; products are decoded when they are asked for.

        Raises:
            CatalogueError: the directory holds no packed catalogue of this version.
        """
        from .packed import PackedCatalogue

        return PackedCatalogue(directory)

    def pack(self, directory: str | Path) -> None:
        """Write the packed form, goals and search index included, into a new directory."""
        from .packed import pack

        pack(self.entries, directory, seed=self.seed)

    def __len__(self) -> int:
        """Return the number of products."""
        return len(self.entries)

    @overload
    def __getitem__(self, index: int) -> Product: ...
    @overload
    def __getitem__(self, index: slice) -> list[Product]: ...
    def __getitem__(self, index: int | slice) -> Product | list[Product]:
        """Return the product at `index`, or those of a slice."""
        if isinstance(index, slice):
            return [self.entries[i].product for i in range(*index.indices(len(self)))]
        return self.entries[index].product

    def __iter__(self) -> Iterator[Product]:
        """Go through all products."""
        return (entry.product for entry in self.entries)

    @cached_property
    def asins(self) -> Sequence[str]:
        """The ids of all products, in order."""
        return tuple(product.asin for product in self)

    def index_of(self, asin: str) -> int:
        """Return the place of a product; raises `UnknownProductError`."""
        place = self._find(asin)
        if place is None:
            raise UnknownProductError(f"no product has the id {asin[:50]!r}")
        return place

    def get(self, asin: str) -> Product:
        """Return a product by its id; raises `UnknownProductError`."""
        return self[self.index_of(asin)]

    def documents(self) -> Iterator[str]:
        """Go through the texts that are indexed, in catalogue order."""
        return map(document, self)

    def search_index(self) -> SearchIndex:
        """Return the search index of the products: built here, opened where it is packed."""
        from .search.index import SearchIndex

        return SearchIndex.build(self.asins, self.documents())

    def goal_rows(self, kind: Literal["synthetic", "human"]) -> NDArray[np.void] | None:
        """Return the rows of goals that were packed with the catalogue, None where none were."""
        return None

    @cached_property
    def manifest_hash(self) -> str:
        """Hash of all that the catalogue holds, the same in memory and packed."""
        digest = hashlib.sha256()
        for entry in self.entries:
            digest.update(encode(entry) + b"\n")
        return digest.hexdigest()

    def _find(self, asin: str) -> int | None:
        return self._places.get(asin)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {asin: place for place, asin in enumerate(self.asins)}


def open_shop_data(data: str | Path | None = None, *, difficulty: str = "default") -> Catalogue:
    """Open a source of products.

    Args:
        data: None or "bundled" for the built-in catalogue, a directory with the original's raw
            files, or a packed catalogue.
        difficulty: of the built-in catalogue.

    Raises:
        CatalogueError: the data is missing or broken, or the difficulty is unknown.
    """
    if data is None or data == "bundled":
        from . import bundled

        if difficulty not in bundled.DIFFICULTIES:
            known = ", ".join(bundled.DIFFICULTIES)
            raise CatalogueError(f"unknown difficulty {difficulty!r:.50}; known: {known}")
        return bundled.catalogue(difficulty)
    from .packed import is_packed

    path = Path(data)
    # Not Path.exists, which raises for a name that is longer than a file's may be.
    if not os.path.exists(path):
        raise CatalogueError(
            f"no catalogue at {str(path)[:_LONGEST]}; expected 'bundled', a packed catalogue, or a "
            "directory with the raw files of WebShop"
        )
    return Catalogue.open(path) if is_packed(path) else Catalogue.read(path)
