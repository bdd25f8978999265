"""Arrays in files that processes map into memory, beside a header that knows their checksums.

Without checksums, a byte that changes on disk or in transit would silently change a product or a
rank. A checksum (CRC-32) costs 0.3 s for a gigabyte.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_CHUNK = 1 << 20


def save_array(path: Path, array: NDArray[Any]) -> int:
    """Write an array; return the checksum of its file."""
    np.save(path, array)
    return _checksum(path)


def open_array(path: Path, checksum: int) -> NDArray[Any]:
    """Map an array; raises ValueError if the file has changed, and OSError."""
    if _checksum(path) != checksum:
        raise ValueError(f"{path.name} is damaged: it is not as it was written")
    mapped: NDArray[Any] = np.load(path, mmap_mode="r")
    return mapped


def write_header(path: Path, facts: Mapping[str, Any]) -> None:
    """Write facts as JSON with a checksum."""
    header = {**facts, "checksum": _checksum_of(facts)}
    path.write_text(json.dumps(header, indent=2), encoding="utf-8")


def read_header(path: Path, form: int) -> dict[str, Any]:
    """Return facts of the format `form`; raises ValueError for others, and OSError."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path.name} is damaged: {error}") from error
    if not isinstance(facts, dict) or "format" not in facts:
        raise ValueError(f"{path.name} names no format")
    if facts["format"] != form:
        raise ValueError(f"{path.name} has format {facts['format']!r:.50}, expected {form}")
    if facts.pop("checksum", None) != _checksum_of(facts):
        raise ValueError(f"{path.name} is damaged: it is not as it was written")
    return facts


def _checksum_of(facts: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(facts, sort_keys=True).encode())


def _checksum(path: Path) -> int:
    found = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found = zlib.crc32(chunk, found)
    return found
