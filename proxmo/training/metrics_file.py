"""One JSON row per iteration, readable during the run and after a crash.

metrics.jsonl and evaluations.jsonl are such files.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from proxmo.errors import DataError
from proxmo.files import replace_text


class IterationFile:
    """Appends rows to a file of JSON lines.

    A row is complete once it ends in a newline. Opening the file cuts off a row that a killed
    process left unfinished, so that the next row does not continue it.

    Args:
        path: of the file; its directory must exist before the first row.
        repair: whether to cut; only the process that writes may.
    """

    def __init__(self, path: Path, *, repair: bool = True) -> None:
        self.path = path
        if repair and path.exists():
            _cut_unfinished_row(path)

    def append(self, iteration: int, values: Mapping[str, Any]) -> None:
        """Writes one row; values that JSON cannot hold (nan, inf) become null."""
        row = {"iteration": iteration} | {k: _plain(v) for k, v in values.items()}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def truncate_after(self, iteration: int) -> None:
        """Drops the rows of later iterations, which a resumed run will measure again."""
        if not self.path.exists():
            return
        rows = [row for row in self.rows() if row["iteration"] <= iteration]
        replace_text(self.path, "".join(json.dumps(row) + "\n" for row in rows))

    def rows(self) -> list[dict[str, Any]]:
        """The complete rows, oldest first; none before there is a file."""
        return read_rows(self.path) if self.path.exists() else []


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Reads the complete rows of a file, oldest first.

    Raises:
        DataError: the file is missing, or a line in it is not a row of metrics.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the metrics {path}: {error}") from error
    # What follows the last newline is empty, or a row that is just being written.
    return [_parse(line, path, number) for number, line in enumerate(lines[:-1], start=1)]


def _parse(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(f"line {number} of {path} is not JSON: {error}") from error
    if not isinstance(row, dict) or not isinstance(row.get("iteration"), int):
        raise DataError(f"line {number} of {path} is not a row of metrics: no whole 'iteration'")
    return row


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cut_unfinished_row(path: Path) -> None:
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    if end < len(content):
        os.truncate(path, end)
