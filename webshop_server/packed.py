"""The packed form of a catalogue: a directory that any number of processes map into memory.

Its files, for N products:

    meta.json         format, seed, manifest hash, checksums of the arrays, see `mapped`
    entries.jsonl     one line of JSON for each product, see `entries.encode`
    lines.npy         (N,) uint32, checksum (CRC-32) of each line
    ends.npy          (N + 1,) where each line starts, and where the last one ends
    asins.npy         (N,) ids in catalogue order, UTF-8
    sorted.npy        (N,) int64, places of the products by ascending id
    goals-KIND.npy    the rows of all goals, see `goalrows.ROW`
    search/           the search index
"""

from __future__ import annotations

import hashlib
import mmap
import shutil
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from .catalogue import Catalogue
from .entries import Entry, decode, encode
from .errors import CatalogueError
from .goalrows import Kind, RowCollector
from .mapped import open_array, read_header, save_array, write_header

if TYPE_CHECKING:
    from .search.index import SearchIndex

_FORMAT = 2
_META, _LINES, _SEARCH = "meta.json", "entries.jsonl", "search"
_KINDS: tuple[Kind, ...] = ("synthetic", "human")
# Decoded products kept by a process: some 10 MB.
_KEPT = 1024
_REPORT_EVERY = 10_000


def is_packed(path: str | Path) -> bool:
    """Say whether `path` is a packed catalogue, or what is left of one."""
    return any((Path(path) / name).is_file() for name in (_META, _LINES))


def pack(
    entries: Iterable[Entry],
    directory: str | Path,
    *,
    seed: int = 0,
    progress: Callable[[str, int], None] = lambda stage, done: None,
) -> None:
    """Write a packed catalogue; entries are taken one by one, so that any number fits.

    Args:
        entries: in catalogue order.
        directory: a path that does not exist yet; it appears when it is complete.
        seed: the one the purchase prices were drawn with.
        progress: told the stage ("products", "goals", "search") and how many products are done.

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


def _write(
    entries: Iterable[Entry], directory: Path, seed: int, progress: Callable[[str, int], None]
) -> None:
    from .search.index import SearchIndex

    goals = [RowCollector(kind) for kind in _KINDS]
    digest = hashlib.sha256()
    asins: list[bytes] = []
    ends, checks = array("q", [0]), array("I")
    with (directory / _LINES).open("wb") as file:
        for entry in entries:
            line = encode(entry) + b"\n"
            file.write(line)
            digest.update(line)
            ends.append(ends[-1] + len(line))
            checks.append(zlib.crc32(line))
            asins.append(entry.product.asin.encode())
            for collector in goals:
                collector.add(entry)
            if len(asins) % _REPORT_EVERY == 0:
                progress("products", len(asins))
    if not asins:
        raise CatalogueError("there are no products to pack; expected at least one")
    ids = np.array(asins, dtype=np.bytes_)
    arrays = {
        "ends.npy": np.array(ends),
        "lines.npy": np.array(checks, np.uint32),
        "asins.npy": ids,
        "sorted.npy": np.argsort(ids, kind="stable"),
    }
    checksums = {name: save_array(directory / name, held) for name, held in arrays.items()}
    progress("goals", len(asins))
    while goals:
        collector = goals.pop()
        name = _goals_file(collector.kind)
        checksums[name] = save_array(directory / name, collector.finish(seed))
    meta = {"format": _FORMAT, "seed": seed, "manifest_hash": digest.hexdigest()}
    write_header(directory / _META, {**meta, "checksums": checksums})
    catalogue = PackedCatalogue(directory)
    documents = _counted(catalogue.documents(), progress)
    SearchIndex.build(catalogue.asins, documents).save(directory / _SEARCH)


def _goals_file(kind: Kind) -> str:
    return f"goals-{kind}.npy"


def _counted(documents: Iterable[str], progress: Callable[[str, int], None]) -> Iterator[str]:
    for done, document in enumerate(documents):
        if done % _REPORT_EVERY == 0:
            progress("search", done)
        yield document


class PackedCatalogue(Catalogue):
    """A catalogue whose products stay on disk until they are asked for; pickled as its path."""

    def __init__(self, directory: str | Path) -> None:
        """Map the files of `directory`; raises `CatalogueError` where they are not complete."""
        self.directory = Path(directory).resolve()
        try:
            meta = read_header(self.directory / _META, _FORMAT)
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error
        self.seed, self.manifest_hash = meta["seed"], meta["manifest_hash"]
        self._checksums: dict[str, int] = meta["checksums"]
        self._ids = self._map("asins.npy")
        self._sorted = self._map("sorted.npy")
        try:
            lines = self.directory / _LINES
            self.entries = _Lines(lines, self._map("ends.npy"), self._map("lines.npy"))
        except OSError as error:
            raise self._unreadable(error) from error
        self.asins = _Ids(self._ids)

    def __reduce__(self) -> tuple[type[PackedCatalogue], tuple[Path]]:
        """Pickle the path; the other process maps the same memory."""
        return PackedCatalogue, (self.directory,)

    def search_index(self) -> SearchIndex:
        """Open the search index."""
        from .search.index import SearchIndex

        return SearchIndex.open(self.directory / _SEARCH)

    def goal_rows(self, kind: Kind) -> NDArray[np.void]:
        """Map the rows of all goals."""
        return self._map(_goals_file(kind))

    def _map(self, name: str) -> NDArray[Any]:
        try:
            return open_array(self.directory / name, self._checksums[name])
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> CatalogueError:
        return CatalogueError(
            f"{self.directory} is no packed catalogue: {error}; pack it again with "
            "`proxmo data webshop`"
        )

    def _find(self, asin: str) -> int | None:
        key = asin.encode("utf-8", "surrogatepass")
        if len(key) > self._ids.dtype.itemsize:
            return None
        wanted = np.array(key, dtype=self._ids.dtype)
        at = int(np.searchsorted(self._ids, wanted, sorter=self._sorted))
        if at == len(self):
            return None
        place = int(self._sorted[at])
        return place if self.asins[place] == asin else None


class _Ids(Sequence[str]):
    """The ids of a packed catalogue."""

    def __init__(self, ids: NDArray[np.bytes_]) -> None:
        self._ids = ids

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [asin.decode() for asin in self._ids[index]]
        return bytes(self._ids[index]).decode()


class _Lines(Sequence[Entry]):
    """The entries of a packed catalogue; those used last stay decoded."""

    def __init__(self, path: Path, ends: NDArray[np.int64], checks: NDArray[np.uint32]) -> None:
        size = path.stat().st_size
        if int(ends[-1]) != size:
            raise CatalogueError(
                f"{path} holds {size} bytes, expected {int(ends[-1])}; pack the catalogue again "
                "with `proxmo data webshop`"
            )
        with path.open("rb") as file:
            self._file = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._path, self._ends, self._checks = path, ends, checks
        self._decoded = lru_cache(maxsize=_KEPT)(self._decode)

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"no product {index}; there are {len(self)}, from 0")
        return self._decoded(index % len(self))

    def __iter__(self) -> Iterator[Entry]:
        return map(self._decode, range(len(self)))

    def _decode(self, index: int) -> Entry:
        line = self._file[self._ends[index] : self._ends[index + 1]]
        if zlib.crc32(line) != self._checks[index]:
            raise CatalogueError(
                f"{self._path} line {index + 1} is damaged; pack the catalogue again with "
                "`proxmo data webshop`"
            )
        return decode(line)
