"""Open the products of a shop from any of their three sources."""

from __future__ import annotations

import os
from pathlib import Path

from webshop_server.data import bundled
from webshop_server.data.catalogue import Catalogue
from webshop_server.data.packed import PackedCatalogue, is_packed
from webshop_server.data.raw import read_catalogue
from webshop_server.errors import CatalogueError

# The most characters of a path that a message quotes.
_LONGEST = 200


def open_catalogue(data: str | Path | None = None, *, difficulty: str = "default") -> Catalogue:
    """Open a catalogue.

    Args:
        data: None or "bundled" for the built-in catalogue, a directory with the original's raw
            files, or a packed catalogue.
        difficulty: of the built-in catalogue.

    Raises:
        CatalogueError: the data is missing or broken, or the difficulty is unknown.
    """
    if data is None or data == "bundled":
        return bundled.catalogue(difficulty)
    path = Path(data)
    # Not Path.exists, which raises for a name that is longer than a file's may be.
    if not os.path.exists(path):
        raise CatalogueError(
            f"no catalogue at {str(path)[:_LONGEST]}; expected 'bundled', a packed catalogue, or a "
            "directory with the raw files of WebShop"
        )
    return PackedCatalogue(path) if is_packed(path) else read_catalogue(path)
