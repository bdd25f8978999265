"""Replaces files atomically: readers see the old content or the new, never half of it."""

from __future__ import annotations

import os
from pathlib import Path


def replace_bytes(path: Path, content: bytes) -> None:
    """Writes a file atomically."""
    partial = path.with_name(f"{path.name}.new")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def replace_text(path: Path, text: str) -> None:
    """Writes a text file in UTF-8 atomically."""
    replace_bytes(path, text.encode())
