"""The inverted index: built once, then mapped into memory.

Documents are numbered by ascending asin, so that ties fall by number. How often a term occurs in
a document and how long that is are one code in each posting; there are a few hundred such pairs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from webshop_server.data.mapped import open_array, read_header, save_array, write_header
from webshop_server.errors import SearchError
from webshop_server.search import bm25
from webshop_server.search.analysis import analyse, term_of, words

_FORMAT = 2
_HEADER = "search.json"

# Number of documents whose words we count at once: enough for numpy, little memory.
_BATCH = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class _Arrays:
    """The arrays of an index, one file each: N documents, V terms, P postings, C pairs.

    Attributes:
        asins: (N,) UTF-8, ascending.
        letters: terms, ascending, one after the other in UTF-8.
        term_ends: (V + 1,) where each term starts in `letters` and the next one ends.
        posting_ends: (V + 1,) the same in the postings.
        documents: (P,) number of the document.
        codes: (P,) index into `saturations`.
        saturations: (C,) of each pair of frequency and length.
        ceilings: (V,) highest saturation of a term.
    """

    asins: NDArray[np.bytes_]
    letters: NDArray[np.uint8]
    term_ends: NDArray[np.int64]
    posting_ends: NDArray[np.int64]
    documents: NDArray[np.int32]
    codes: NDArray[np.unsignedinteger]
    saturations: NDArray[np.float32]
    ceilings: NDArray[np.float32]


class SearchIndex:
    """An immutable inverted index of documents named by asin; threads and forks may share it."""

    def __init__(self, arrays: _Arrays, counted: int, directory: Path | None = None) -> None:
        self._arrays = arrays
        self._counted = counted  # documents with at least one term: N of the idf
        self._directory = directory
        # Reading single items from a buffer is faster than from an array.
        self._letters = arrays.letters.data
        self._term_ends = arrays.term_ends.data

    @classmethod
    def build(cls, asins: Sequence[str], documents: Iterable[str]) -> SearchIndex:
        """Index one document per asin, in the same order.

        Reads the documents one by one; keeps about 30 bytes per distinct term of each until they
        are sorted, and 6 afterwards.

        Raises:
            SearchError: no documents or none with a word, an asin twice, or not one document each.
        """
        names = np.array([asin.encode() for asin in asins], np.bytes_)
        order = np.argsort(names, kind="stable")
        names = names[order]
        if len(names) and (same := names[1:] == names[:-1]).any():
            twice = names[1:][same][0].decode()
            raise SearchError(f"asin {twice!r} names two documents; each must have its own.")
        numbers = np.empty(len(names), np.int32)
        numbers[order] = np.arange(len(names))
        return cls(*_invert(names, numbers, documents))

    def save(self, directory: str | Path) -> None:
        """Write the index into a directory; make it if it is missing."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        checksums = {
            field.name: save_array(_path(directory, field.name), getattr(self._arrays, field.name))
            for field in fields(_Arrays)
        }
        header = {"format": _FORMAT, "counted": self._counted, "checksums": checksums}
        write_header(directory / _HEADER, header)

    @classmethod
    def open(cls, directory: str | Path) -> SearchIndex:
        """Map a saved index into memory; processes that open the same one share its pages.

        Raises:
            SearchError: there is no index, it is broken, or another version wrote it.
        """
        directory = Path(directory)
        try:
            header = read_header(directory / _HEADER, _FORMAT)
            checksums = header["checksums"]
            files = [(_path(directory, f.name), checksums[f.name]) for f in fields(_Arrays)]
            # Plain views: the subclass `memmap` costs a sixth of the time of a search.
            arrays = _Arrays(*(np.asarray(open_array(*file)) for file in files))
        except (OSError, ValueError) as error:
            raise SearchError(
                f"{directory} holds no readable search index ({error}); build it again and save "
                "it there, a packed catalogue with `proxmo data webshop`"
            ) from error
        return cls(arrays, header["counted"], directory.resolve())

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self._arrays.asins)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._directory is not None:
            return SearchIndex.open, (self._directory,)
        return SearchIndex, (self._arrays, self._counted)

    def search(self, query: str, k: int = 50) -> list[str]:
        """Return the asins of the best k documents, best first; fewer if fewer match."""
        return [asin for asin, _ in self.search_scored(query, k)]

    def search_scored(self, query: str, k: int = 50) -> list[tuple[str, float]]:
        """Return (asin, score) of the best k documents, best first, ties by asin.

        Any text is a query: it is a bag of words, and operators or markup mean nothing.
        """
        if k < 1:
            raise ValueError(f"k is {k}, expected the number of documents wanted, 1 or more")
        return self.named(*bm25.best(self.postings(query), len(self), k))

    def named(
        self, numbers: NDArray[np.int64], scores: NDArray[np.float32]
    ) -> list[tuple[str, float]]:
        """Return the asins of documents with their scores."""
        names = self._arrays.asins.take(numbers).tolist()
        return [(name.decode(), score) for name, score in zip(names, scores.tolist(), strict=True)]

    def postings(self, query: str) -> list[bm25.Postings]:
        """Return the postings of the query's terms, without those that no document has."""
        counts = Counter(analyse(query)).items()
        found = ((self._row(term), count) for term, count in counts)
        return [self._postings(row, count) for row, count in found if row is not None]

    def _row(self, term: str) -> int | None:
        wanted = term.encode("utf-8", "surrogatepass")
        rows = range(len(self._arrays.ceilings))
        row = bisect_left(rows, wanted, key=self._term)
        return row if row < len(rows) and self._term(row) == wanted else None

    def _term(self, row: int) -> bytes:
        return self._letters[self._term_ends[row] : self._term_ends[row + 1]].tobytes()

    def _postings(self, row: int, count: int) -> bm25.Postings:
        arrays = self._arrays
        start, end = arrays.posting_ends[row : row + 2]
        weight = np.float32(count) * bm25.idf(self._counted, int(end - start))
        return bm25.Postings(
            documents=arrays.documents[start:end],
            codes=arrays.codes[start:end],
            saturations=arrays.saturations,
            weight=weight,
            bound=float(weight - weight / arrays.ceilings[row]),
        )


def _path(directory: Path, name: str) -> Path:
    return directory / f"search_{name}.npy"


class _Vocabulary(dict[str, int]):
    """Word -> number of its term in order of appearance, -1 for none; filled on lookup."""

    def __init__(self) -> None:
        self.terms: dict[str, int] = {}

    def __missing__(self, word: str) -> int:
        term = term_of(word)
        number = self.terms.setdefault(term, len(self.terms)) if term else -1
        self[word] = number
        return number


def _invert(
    names: NDArray[np.bytes_], numbers: NDArray[np.int32], documents: Iterable[str]
) -> tuple[_Arrays, int]:
    """Return the arrays of an index and how many of its documents have a term."""
    vocabulary = _Vocabulary()
    batches = []
    done = counted = total = 0
    stream = iter(documents)
    while batch := list(islice(stream, _BATCH)):
        if done + len(batch) > len(numbers):
            raise SearchError(f"there are more documents than the {len(numbers)} asins.")
        rows, terms, pairs, lengths = _count(batch, vocabulary)
        batches.append((terms, numbers[done : done + len(batch)][rows], pairs))
        done += len(batch)
        counted += int(np.count_nonzero(lengths))
        total += int(lengths.sum())
    if done < len(numbers):
        raise SearchError(f"{len(numbers)} asins came with only {done} documents.")
    if not counted:
        raise SearchError(f"nothing to search: no word in {done} documents.")
    terms, rows, pairs = (np.concatenate(column) for column in zip(*batches, strict=True))
    return _Arrays(names, *_sort(vocabulary.terms, terms, rows, pairs, total / counted)), counted


def _count(batch: list[str], vocabulary: _Vocabulary) -> tuple[NDArray[Any], ...]:
    """Return per posting (document of the batch, term, pair) and per document its length."""
    found = [[vocabulary[word] for word in words(text)] for text in batch]
    rows = np.repeat(np.arange(len(batch)), [len(terms) for terms in found])
    terms = np.fromiter((term for terms in found for term in terms), np.int64, len(rows))
    rows, terms = rows[terms >= 0], terms[terms >= 0]
    lengths = np.bincount(rows, minlength=len(batch))
    size = max(len(vocabulary.terms), 1)
    keys, frequencies = np.unique(rows * size + terms, return_counts=True)
    rows, terms = np.divmod(keys, size)
    pairs = frequencies * 256 + bm25.length_codes(lengths)[rows]
    return rows, terms.astype(np.int32), pairs.astype(np.int32), lengths


def _sort(
    vocabulary: dict[str, int],
    terms: NDArray[np.int32],
    documents: NDArray[np.int32],
    pairs: NDArray[np.int32],
    average: float,
) -> tuple[NDArray[Any], ...]:
    """Return the arrays of an index, but for its names, from the postings in any order."""
    kinds = np.unique(pairs)
    saturations = bm25.saturations(kinds >> 8, kinds & 255, average)
    encoded = [term.encode("utf-8", "surrogatepass") for term in vocabulary]
    order = sorted(range(len(encoded)), key=encoded.__getitem__)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    # One number holds a posting: 2**63 is enough for ten million terms of a billion documents.
    size = int(documents.max()) + 1
    keys = places[terms] * size
    keys += documents
    keys *= len(kinds)
    keys += np.searchsorted(kinds, pairs)
    keys.sort()
    keys, codes = np.divmod(keys, len(kinds))
    codes = codes.astype(np.min_scalar_type(len(kinds)))
    terms, documents = np.divmod(keys, size)
    ends = np.searchsorted(terms, np.arange(len(order) + 1))
    return (
        np.frombuffer(b"".join(encoded[i] for i in order), np.uint8),
        np.cumsum([0] + [len(encoded[i]) for i in order], dtype=np.int64),
        ends,
        documents.astype(np.int32),
        codes,
        saturations,
        np.maximum.reduceat(saturations[codes], ends[:-1]),
    )
