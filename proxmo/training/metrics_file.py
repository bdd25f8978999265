"""metrics.jsonl: one JSON row per iteration, readable during the run and after a crash."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proxmo.errors import DataError
from proxmo.files import replace_text


class MetricsFile:
    """Appends rows to `metrics.jsonl`.

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

    def append(self, iteration: int, metrics: Mapping[str, float]) -> None:
        """Write one row; values that JSON cannot hold (nan, inf) become null."""
        row: dict[str, float | int | None] = {"iteration": iteration}
        row |= {key: _finite(value) for key, value in metrics.items()}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, allow_nan=False) + "\n")

    def truncate_after(self, iteration: int) -> None:
        """Drop the rows of later iterations, which a resumed run will measure again."""
        if not self.path.exists():
            return
        rows = [row for row in read_rows(self.path) if row["iteration"] <= iteration]
        replace_text(self.path, "".join(json.dumps(row) + "\n" for row in rows))


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read the complete rows of a metrics file, oldest first.

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


def _finite(value: float) -> float | int | None:
    # `float` and `int` turn numpy scalars into what json writes.
    if isinstance(value, int):
        return int(value)
    return float(value) if math.isfinite(value) else None


def _cut_unfinished_row(path: Path) -> None:
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    if end < len(content):
        os.truncate(path, end)
