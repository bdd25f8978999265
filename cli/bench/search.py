"""The search measured on documents of made-up words, beside the plain way to rank them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from webshop_server.search import bm25
from webshop_server.search.index import SearchIndex

from .processes import isolated, peak_mb

# Words of a document as the text that a product is found by has: about 31 at a million.
_LENGTH = 31
_VOCABULARY = 50_000
# A word of rank r is drawn in proportion to 1 / (r + 2.7): Zipf's law in Mandelbrot's form.
_MANDELBROT = 2.7
_BATCH = 10_000


@dataclass(frozen=True, slots=True)
class Measurement:
    """The costs of an index, and of searches in it.

    Attributes:
        documents: their number.
        build_seconds: time to make up and index the documents.
        peak_mb: most memory of the process that built the index; 0 where unknown.
        disk_mb: size of the saved index.
        open_ms: time to open it.
        p50_ms, p99_ms: time of a search.
        plain_p50_ms, plain_p99_ms: time of the plain way, measured in turn: add up the scores of
            all documents that have a word of the query, then rank them.
        same: share of the queries that got the same documents and scores from both.
    """

    documents: int
    build_seconds: float
    peak_mb: float
    disk_mb: float
    open_ms: float
    p50_ms: float
    p99_ms: float
    plain_p50_ms: float
    plain_p99_ms: float
    same: float


def measure(size: int, *, queries: int = 200, seed: int = 0) -> Measurement:
    """Build, save, open and search an index of `size` documents, in a process of its own."""
    return isolated(_measure, size, queries, seed)


def made_up_documents(size: int, generator: np.random.Generator) -> Iterator[str]:
    """Return texts of words drawn by Zipf's law."""
    letters = generator.integers(ord("a"), ord("z") + 1, (_VOCABULARY, 9), dtype=np.uint8)
    lengths = generator.integers(3, 10, _VOCABULARY)
    spelt = [row[:length].tobytes() for row, length in zip(letters, lengths, strict=True)]
    words = np.array([word.decode() for word in spelt], object)
    shares = np.cumsum(1 / (np.arange(_VOCABULARY) + _MANDELBROT))
    for start in range(0, size, _BATCH):
        rows = min(_BATCH, size - start)
        drawn = generator.random((rows, _LENGTH)) * shares[-1]
        yield from map(" ".join, words[np.searchsorted(shares, drawn)].tolist())


def _measure(size: int, queries: int, seed: int) -> Measurement:
    generator = np.random.default_rng(seed)
    asked: list[str] = []
    every = max(size // queries, 1)

    def documents() -> Iterator[str]:
        for number, text in enumerate(made_up_documents(size, generator)):
            if number % every == 0:
                words = text.split()
                asked.append(" ".join(words[: 3 + len(asked) % 10]))
            yield text

    started = time.perf_counter()
    built = SearchIndex.build([f"B{number:09d}" for number in range(size)], documents())
    build_seconds = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as directory:
        built.save(directory)
        disk = sum(file.stat().st_size for file in Path(directory).iterdir())
        started = time.perf_counter()
        index = SearchIndex.open(directory)
        open_seconds = time.perf_counter() - started
        pruned, plain, same = np.array(_time(index, asked[:queries])).T
    return Measurement(
        documents=size,
        build_seconds=build_seconds,
        peak_mb=peak_mb(),
        disk_mb=disk / 1e6,
        open_ms=1e3 * open_seconds,
        p50_ms=float(np.percentile(pruned, 50)),
        p99_ms=float(np.percentile(pruned, 99)),
        plain_p50_ms=float(np.percentile(plain, 50)),
        plain_p99_ms=float(np.percentile(plain, 99)),
        same=float(np.mean(same)),
    )


def _time(index: SearchIndex, queries: Sequence[str]) -> list[tuple[float, float, bool]]:
    """Return per query its ms, those of the plain way, and whether the two agree."""
    rows = []
    for query in queries:
        start = time.perf_counter()
        found = index.search_scored(query)
        middle = time.perf_counter()
        expected = _plain(index, query)
        end = time.perf_counter()
        rows.append((1e3 * (middle - start), 1e3 * (end - middle), found == expected))
    return rows


def _plain(index: SearchIndex, query: str, k: int = 50) -> list[tuple[str, float]]:
    """Rank by adding up the scores of all documents."""
    sums: NDArray[np.float64] = np.zeros(len(index))
    for term in index.postings(query):
        sums[term.documents] += term.parts()
    numbers = np.flatnonzero(sums)
    return index.named(*bm25.top(numbers, sums[numbers], k))
