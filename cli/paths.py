"""Paths on the command line that must mean the same wherever a run is continued from."""

from __future__ import annotations

from pathlib import Path

# Words for what is built in, even if something here is called so.
_BUILT_IN = ("tiny", "generated", "bundled")


def absolute(path: str | None) -> str | None:
    """The absolute path of what exists here; a word for what is built in, or a hub id, as it is."""
    # Without the first condition an empty text would be this directory.
    if not path or path in _BUILT_IN or not Path(path).exists():
        return path
    return str(Path(path).absolute())
