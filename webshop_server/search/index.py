"""The index: terms of all documents, their postings, and the ranking of a query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path


class SearchIndex:
    """An immutable inverted index of documents named by asin."""

    @classmethod
    def build(cls, asins: Sequence[str], documents: Iterable[str]) -> SearchIndex:
        """Index one document per asin, in the same order."""
        raise NotImplementedError

    def save(self, directory: str | Path) -> None:
        """Write the index into a directory, which is made if need be."""
        raise NotImplementedError

    @classmethod
    def open(cls, directory: str | Path) -> SearchIndex:
        """Map a saved index into memory; processes that open the same one share its pages."""
        raise NotImplementedError

    def __len__(self) -> int:
        """Return the number of documents."""
        raise NotImplementedError

    def search(self, query: str, k: int = 50) -> list[str]:
        """Return the asins of the best k documents, best first; fewer when fewer match."""
        raise NotImplementedError

    def search_scored(self, query: str, k: int = 50) -> list[tuple[str, float]]:
        """Return (asin, score) of the best k documents, best first."""
        raise NotImplementedError
