"""The catalogue: products in a fixed order, in memory or memory-mapped from a packed directory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .errors import UnknownProductError
from .records import Product


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody asked for in words, before options and a price limit are added.

    Attributes:
        text: the instruction.
        attributes: what it asks for.
        options: the option values it asks for (of a crowd worker's instruction only).
    """

    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """A product and the wishes that goals are made from.

    Attributes:
        product: the product.
        synthetic: one goal for every choice of options is made from it.
        human: one goal each is made from those that name attributes.
    """

    product: Product
    synthetic: Wish | None = None
    human: tuple[Wish, ...] = ()


class Catalogue(Sequence[Product]):
    """Products in the order of their files; immutable, and safe in threads and after a fork."""

    def __init__(self, entries: Iterable[Entry], seed: int = 0) -> None:
        """Hold `entries`; `seed` is the one their purchase prices were drawn with."""
        self.entries: Sequence[Entry] = tuple(entries)
        self.seed = seed
        self.directory: Path | None = None

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
        raise NotImplementedError

    @classmethod
    def open(cls, directory: str | Path) -> Catalogue:
        """Open a packed catalogue, memory-mapped; products are decoded when asked for."""
        raise NotImplementedError

    def pack(self, directory: str | Path) -> None:
        """Write the packed form, goals and search index included."""
        raise NotImplementedError

    def __len__(self) -> int:
        """Return the number of products."""
        return len(self.entries)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        """Return the product at `index`."""
        return self.entries[index].product

    @cached_property
    def asins(self) -> Sequence[str]:
        """The ids of all products, in order."""
        return tuple(entry.product.asin for entry in self.entries)

    def index_of(self, asin: str) -> int:
        """Return the place of a product; raises `UnknownProductError`."""
        try:
            return self._places[asin]
        except KeyError:
            raise UnknownProductError(f"no product has the id {asin[:50]!r}") from None

    def get(self, asin: str) -> Product:
        """Return a product by its id; raises `UnknownProductError`."""
        return self[self.index_of(asin)]

    def documents(self) -> Iterator[str]:
        """Go through the texts that are indexed, in catalogue order."""
        return (document(entry.product) for entry in self.entries)

    @cached_property
    def manifest_hash(self) -> str:
        """Hash of all that the catalogue holds."""
        return hashlib.sha256(repr(self.entries).encode()).hexdigest()

    @cached_property
    def _places(self) -> dict[str, int]:
        return {asin: place for place, asin in enumerate(self.asins)}


def document(product: Product) -> str:
    """Return the text of a product that is indexed: title, description, first bullet, options."""
    options = ", and ".join(
        f"{name}: {', '.join(values)}" for name, values in product.options.items()
    )
    first = product.bullets[0] if product.bullets else ""
    return " ".join((product.title, product.description, first, options)).lower()


def open_shop_data(
    data: str | Path | None = None, *, difficulty: str = "default", limit: int | None = None
) -> Catalogue:
    """Open a source of products.

    Args:
        data: None or "bundled" for the built-in catalogue, a directory with the original's raw
            files, or a packed catalogue.
        difficulty: of the built-in catalogue.
        limit: of raw files, as in `Catalogue.read`.
    """
    raise NotImplementedError
