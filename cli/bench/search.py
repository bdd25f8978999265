"""`proxmo bench search`: the search on documents of made-up words, beside a plain way to rank."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click
import numpy as np
from numpy.typing import NDArray

from webshop_server.search import bm25
from webshop_server.search.index import SearchIndex

from .. import options
from ..display import progress, show_json
from .measurements import Column, Sizes, show_measurements
from .processes import isolated, peak_mb

# Words of a document as the text that a product is found by has: about 31 at a million.
_LENGTH = 31
_VOCABULARY = 50_000
# A word of rank r is drawn in proportion to 1 / (r + 2.7): Zipf's law in Mandelbrot's form.
_MANDELBROT = 2.7
_BATCH = 10_000


@dataclass(frozen=True, slots=True)
class Measurement:
    """The costs of an index, and of searches in it."""

    documents: Annotated[int, Column("documents")]
    # Making up the documents included.
    build_seconds: Annotated[float, Column("build", "{:.1f} s")]
    # Of the process that built the index; 0 where unknown.
    peak_mb: Annotated[float, Column("peak memory", "{:.0f} MB")]
    disk_mb: Annotated[float, Column("on disk", "{:.1f} MB")]
    open_ms: Annotated[float, Column("open", "{:.2f} ms")]
    p50_ms: Annotated[float, Column("search p50", "{:.2f} ms")]
    p99_ms: Annotated[float, Column("search p99", "{:.2f} ms")]
    # The plain way adds up the scores of all documents that have a word of the query, then ranks.
    plain_p50_ms: Annotated[float, Column("plain p50", "{:.2f} ms")]
    plain_p99_ms: Annotated[float, Column("plain p99", "{:.2f} ms")]
    ratio: Annotated[float, Column("ratio", "{:.1f}")]
    # Share of the queries that got the same documents and scores from both.
    same: Annotated[float, Column("same", "{:.0%}")]


@click.command("search")
@options.text(
    "--sizes",
    "Documents; 1100000 takes a few minutes and 3 GB",
    "1000,100000",
    metavar="N,...",
    type=Sizes(),
)
@options.count("--queries", "Searches", 200)
@options.seed("Seed", 0)
@options.as_json()
@options.debug
def command(sizes: tuple[int, ...], queries: int, seed: int, as_json: bool) -> None:
    """Measure the search of the shop on documents of made-up words.

    Each size runs in its own process. The plain way scores every document that has a word of the
    query; both ways answer the same queries in turn and must agree.
    """
    found = []
    with progress("proxmo bench search", keep=False) as listener:
        for size in sizes:
            listener.phase("search", text=f"{size} documents")
            found.append(isolated(_measure, size, queries, seed))
    if as_json:
        show_json(found)
    else:
        show_measurements(found)


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
                asked.append(" ".join(text.split()[: 3 + len(asked) % 10]))
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
        ours, plain, same = np.array([_time(index, query) for query in asked[:queries]]).T
    p50, p99, plain_p50, plain_p99 = np.percentile([ours, plain], (50, 99), axis=1).T.ravel()
    return Measurement(
        size,
        build_seconds,
        peak_mb(),
        disk / 1e6,
        1e3 * open_seconds,
        float(p50),
        float(p99),
        float(plain_p50),
        float(plain_p99),
        float(plain_p50 / p50),
        float(np.mean(same)),
    )


def _time(index: SearchIndex, query: str) -> tuple[float, float, bool]:
    """Return the ms of a search, those of the plain way, and whether the two agree."""
    start = time.perf_counter()
    found = index.search_scored(query)
    middle = time.perf_counter()
    expected = _plain(index, query)
    end = time.perf_counter()
    return 1e3 * (middle - start), 1e3 * (end - middle), found == expected


def _plain(index: SearchIndex, query: str, k: int = 50) -> list[tuple[str, float]]:
    """Rank by adding up the scores of all documents."""
    sums: NDArray[np.float64] = np.zeros(len(index))
    for term in index.postings(query):
        sums[term.documents] += term.parts()
    numbers = np.flatnonzero(sums)
    return index.named(*bm25.top(numbers, sums[numbers], k))
