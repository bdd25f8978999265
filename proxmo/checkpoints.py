"""Checkpoints as their readers see them: a Hugging Face directory plus the run's settings.

`RUN/checkpoints/step_N` exists complete or not at all (`training.checkpoint` writes it), so the
latest checkpoint is the one with the highest N.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proxmo.errors import CheckpointError

SETTINGS_FILE = "proxmo.json"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint on disk.

    Attributes:
        path: its directory.
        iteration: iterations trained so far.
        settings: settings of the run it is from.
    """

    path: Path
    iteration: int
    settings: Mapping[str, Any]


def read_checkpoint(path: Path) -> Checkpoint:
    """Reads the settings of a checkpoint, or of the latest one of a run directory.

    Raises:
        CheckpointError: `path` is neither.
    """
    if not path.exists():
        raise CheckpointError(
            f"checkpoint {str(path)!r} does not exist; give RUN or RUN/checkpoints/step_N"
        )
    if (path / "checkpoints").is_dir():
        found = latest_checkpoint(path)
        if found is None:
            raise CheckpointError(f"run {str(path)!r} has no complete checkpoint yet")
        return found
    try:
        settings = json.loads((path / SETTINGS_FILE).read_text(encoding="utf-8"))
        return Checkpoint(path, int(settings["iteration"]), settings)
    except (OSError, ValueError, KeyError, TypeError) as cause:
        raise CheckpointError(
            f"{str(path)!r} is not a proxmo checkpoint: expected a directory with {SETTINGS_FILE}, "
            "model weights and tokenizer, such as RUN/checkpoints/step_N"
        ) from cause


def list_checkpoints(run: Path) -> list[tuple[int, Path]]:
    """All complete checkpoints of a run as (iteration, path), oldest first."""
    found = []
    for path in (run / "checkpoints").glob("step_*"):
        number = path.name.removeprefix("step_")
        if number.isdigit() and (path / SETTINGS_FILE).is_file():
            found.append((int(number), path))
    return sorted(found)


def latest_checkpoint(run: Path) -> Checkpoint | None:
    """The newest complete checkpoint of a run, or None."""
    found = list_checkpoints(run)
    return read_checkpoint(found[-1][1]) if found else None
