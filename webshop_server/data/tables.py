"""Words and texts in files, each beside the module that uses it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_words(path: Path) -> tuple[str, ...]:
    """Return the words of a file in their order; a line that starts with "#" is a comment."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(word for line in lines if not line.startswith("#") for word in line.split())


def read_table(path: Path) -> Mapping[str, Any]:
    """Return the content of a TOML file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))
