"""Lists of words in text files, each beside the module that uses it."""

from __future__ import annotations

from pathlib import Path


def read_words(path: Path) -> tuple[str, ...]:
    """Return the words of a file in their order; a line that starts with "#" is a comment."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(word for line in lines if not line.startswith("#") for word in line.split())
