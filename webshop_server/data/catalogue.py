"""The catalogue: products in a fixed order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from webshop_server.data.lazy_sequence import LazySequence
from webshop_server.data.products import Entry, Product, document, encode
from webshop_server.errors import UnknownProductError


class Catalogue(LazySequence[Product]):
    """Products in the order of their files; immutable, and safe in threads and after a fork.

    Attributes:
        entries: the products and the wishes that goals are made from.
        seed: drew the purchase prices of the products; it also draws the price limits of goals.
    """

    noun = "product"

    def __init__(self, entries: Iterable[Entry], seed: int = 0) -> None:
        """Hold `entries`, whose products have different ids."""
        self.entries: Sequence[Entry] = tuple(entries)
        self.seed = seed

    def __len__(self) -> int:
        """Return the number of products."""
        return len(self.entries)

    def _make(self, index: int) -> Product:
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
        """Go through the texts to index, in catalogue order."""
        return map(document, self)

    def packed_array(self, name: str) -> NDArray[Any] | None:
        """Return an array that was packed with the catalogue, None for a catalogue in memory."""
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
