"""The packed form of a catalogue: a directory that any number of processes map into memory.

Its files, for N products:

    meta.json         format, seed, manifest hash, checksums of the arrays, see `mapped`
    entries.jsonl     one line of JSON for each product, see `products.encode`
    lines.npy         (N,) uint32, checksum (CRC-32) of each line
    ends.npy          (N + 1,) starts of the lines, and the end of the last one
    asins.npy         (N,) ids in catalogue order, UTF-8
    sorted.npy        (N,) int64, places of the products by ascending id
    goals-KIND.npy    the rows of all goals, see `rules.goal_rows`
    search/           the search index
"""

from __future__ import annotations

import hashlib
import mmap
import zlib
from array import array
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from webshop_server.data.catalogue import Catalogue
from webshop_server.data.lazy_sequence import Computed, LazySequence
from webshop_server.data.mapped import open_array, read_header, save_array, write_header
from webshop_server.data.products import Entry, decode, encode
from webshop_server.errors import CatalogueError

_FORMAT = 2
_META, _LINES = "meta.json", "entries.jsonl"
# Decoded products that a process keeps: some 10 MB.
_KEPT = 1024


def is_packed(path: Path) -> bool:
    """Return whether `path` is a packed catalogue, or the remains of one."""
    return any((path / name).is_file() for name in (_META, _LINES))


def write_entries(
    entries: Iterable[Entry],
    directory: Path,
    *,
    seed: int,
    more_arrays: Iterable[tuple[str, NDArray[Any]]] = (),
) -> None:
    """Write the packed form of `entries` into an empty directory.

    Args:
        entries: in catalogue order; they are taken one by one, so that any number fits.
        directory: where the files go.
        seed: the one the purchase prices were drawn with.
        more_arrays: names and arrays for `packed_array`; read after all entries.

    Raises:
        CatalogueError: there are no entries.
    """
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
    if not asins:
        raise CatalogueError("there are no products to pack; expected at least one")
    ids = np.array(asins, dtype=np.bytes_)
    arrays = {
        "ends": np.array(ends),
        "lines": np.array(checks, np.uint32),
        "asins": ids,
        "sorted": np.argsort(ids, kind="stable"),
    }
    checksums = {}
    for source in (arrays.items(), more_arrays):
        for name, values in source:
            checksums[f"{name}.npy"] = save_array(directory / f"{name}.npy", values)
    meta = {"format": _FORMAT, "seed": seed, "manifest_hash": digest.hexdigest()}
    write_header(directory / _META, {**meta, "checksums": checksums})


class PackedCatalogue(Catalogue):
    """A catalogue whose products stay on disk until they are read; pickled as its path."""

    def __init__(self, directory: str | Path) -> None:
        """Map the files of `directory`; raises `CatalogueError` if one is missing or damaged."""
        self.directory = Path(directory).resolve()
        try:
            meta = read_header(self.directory / _META, _FORMAT)
            self.seed, self.manifest_hash = meta["seed"], meta["manifest_hash"]
            self._checksums: dict[str, int] = meta["checksums"]
            self._ids, self._sorted = self.packed_array("asins"), self.packed_array("sorted")
            ends, checks = self.packed_array("ends"), self.packed_array("lines")
            self.entries = _Lines(self.directory / _LINES, ends, checks)
        except CatalogueError:
            raise
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error
        self.asins = Computed(len(self._ids), self._asin)

    def __reduce__(self) -> tuple[type[PackedCatalogue], tuple[Path]]:
        """Pickle the path; the other process maps the same memory."""
        return PackedCatalogue, (self.directory,)

    def packed_array(self, name: str) -> NDArray[Any]:
        """Map an array of the directory; raises `CatalogueError` if it is damaged."""
        file = f"{name}.npy"
        try:
            return open_array(self.directory / file, self._checksums[file])
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> CatalogueError:
        return CatalogueError(
            f"{self.directory} is no packed catalogue: {error}; pack it again with "
            "`proxmo data webshop`"
        )

    def _asin(self, index: int) -> str:
        return bytes(self._ids[index]).decode()

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


class _Lines(LazySequence[Entry]):
    """The entries of a packed catalogue; the last ones read stay decoded."""

    noun = "product"

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

    def __iter__(self) -> Iterator[Entry]:
        return map(self._decode, range(len(self)))

    def _make(self, index: int) -> Entry:
        return self._decoded(index)

    def _decode(self, index: int) -> Entry:
        line = self._file[self._ends[index] : self._ends[index + 1]]
        if zlib.crc32(line) != self._checks[index]:
            raise CatalogueError(
                f"{self._path} line {index + 1} is damaged; pack the catalogue again with "
                "`proxmo data webshop`"
            )
        return decode(line)
