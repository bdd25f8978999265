"""Pack a catalogue with its goals and its search index, so that a shop opens at once."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

from numpy.typing import NDArray

from webshop_server.data.catalogue import Catalogue
from webshop_server.data.packed import PackedCatalogue, write_entries
from webshop_server.data.products import Entry
from webshop_server.errors import CatalogueError
from webshop_server.rules.goal_rows import RowCollector
from webshop_server.rules.records import GoalKind
from webshop_server.search.index import SearchIndex

Progress = Callable[[str, int], None]
_SEARCH = "search"
_REPORT_EVERY = 10_000


def pack(
    entries: Iterable[Entry],
    directory: str | Path,
    *,
    seed: int = 0,
    progress: Progress = lambda stage, done: None,
) -> None:
    """Write a packed catalogue; entries are taken one by one, so that any number fits.

    Args:
        entries: in catalogue order.
        directory: a path that does not exist yet; it appears when it is complete.
        seed: the one the purchase prices were drawn with.
        progress: called with the stage ("products", "goals", "search") and the number of products
            done.

    Raises:
        CatalogueError: `directory` exists, or there are no entries.
    """
    target = Path(directory)
    if target.exists():
        raise CatalogueError(f"{target} exists already; remove it or name another directory")
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    try:
        _write(entries, unfinished, seed, progress)
        unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _write(entries: Iterable[Entry], directory: Path, seed: int, progress: Progress) -> None:
    collectors = [RowCollector(kind) for kind in get_args(GoalKind)]
    done = 0

    def collected() -> Iterator[Entry]:
        nonlocal done
        for done, entry in enumerate(entries, 1):
            for collector in collectors:
                collector.add(entry)
            if done % _REPORT_EVERY == 0:
                progress("products", done)
            yield entry

    def goal_rows() -> Iterator[tuple[str, NDArray[Any]]]:
        progress("goals", done)
        while collectors:
            collector = collectors.pop()
            yield f"goals-{collector.kind}", collector.finish(seed)

    write_entries(collected(), directory, seed=seed, more_arrays=goal_rows())
    catalogue = PackedCatalogue(directory)
    documents = _reported(catalogue.documents(), progress)
    SearchIndex.build(catalogue.asins, documents).save(directory / _SEARCH)


def _reported(documents: Iterable[str], progress: Progress) -> Iterator[str]:
    for done, document in enumerate(documents):
        if done % _REPORT_EVERY == 0:
            progress("search", done)
        yield document


def search_index(catalogue: Catalogue) -> SearchIndex:
    """Return the search index of a catalogue: opened where it is packed, built where it is not."""
    if isinstance(catalogue, PackedCatalogue):
        return SearchIndex.open(catalogue.directory / _SEARCH)
    return SearchIndex.build(catalogue.asins, catalogue.documents())
