"""Writes checkpoints: Hugging Face directories plus the trainer's state, complete or not at all.

A checkpoint is written under a hidden name and renamed once all of it is on disk.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from proxmo.checkpoints import SETTINGS_FILE, list_checkpoints
from proxmo.errors import CheckpointError
from proxmo.training.adapters import export_model

STATE_FILE = "trainer_state.pt"


def save_checkpoint(
    directory: Path,
    iteration: int,
    *,
    model: Any,
    tokenizer: Any,
    settings: Mapping[str, Any],
    state: Mapping[str, Any] | None,
) -> Path:
    """Writes `directory/step_<iteration>` atomically and returns its path.

    Args:
        directory: the run's `checkpoints` folder.
        iteration: training iterations done.
        model: saved as an ordinary Hugging Face model, adapters added to its weights.
        tokenizer: likewise.
        settings: JSON object that `proxmo eval` reads its environment and prompt from.
        state: optimiser and schedule, for a resumed run; None writes none.

    Raises:
        CheckpointError: the disk is full or not writable; earlier checkpoints stay intact.
    """

    def fill(path: Path) -> None:
        import torch

        export_model(model, path)
        tokenizer.save_pretrained(path)
        if state is not None:
            torch.save(dict(state), path / STATE_FILE)
        text = json.dumps({"iteration": iteration, **settings}, indent=2)
        (path / SETTINGS_FILE).write_text(text, encoding="utf-8")

    return write_directory(directory / f"step_{iteration}", fill, replace=True)


def write_directory(target: Path, fill: Callable[[Path], None], *, replace: bool = False) -> Path:
    """Lets `fill` write a hidden directory beside `target`, then renames it to `target`.

    Args:
        target: appears complete or not at all.
        fill: writes the files into the directory it gets.
        replace: whether to replace an existing `target`; otherwise the first one stays.

    Raises:
        CheckpointError: writing failed; `target` is unchanged, the partial directory gone.
    """
    partial = target.parent / f".partial-{target.name}-{os.getpid()}"
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        fill(partial)
        for path in sorted(partial.rglob("*")):
            if path.is_file():
                _sync(path)
        _sync(partial)
        _publish(partial, target, replace=replace)
        _sync(target.parent)
    except Exception as cause:  # safetensors and tokenizers have their own errors for a full disk
        raise CheckpointError(
            f"cannot save {target}: {cause}; free some space or choose another --out "
            "(earlier checkpoints are intact)"
        ) from cause
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def _publish(partial: Path, target: Path, *, replace: bool) -> None:
    """Renames `partial` to `target`; moves an existing one aside first and removes it last."""
    old = target.parent / f".partial-old-{target.name}-{os.getpid()}"
    if replace and target.exists():
        target.rename(old)
    try:
        partial.rename(target)
    except OSError:
        # Another process was faster; only an empty directory can be renamed over.
        if replace or not target.is_dir():
            raise
    shutil.rmtree(old, ignore_errors=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def prune_checkpoints(run: Path, *, keep: int, protect: int | None = None) -> None:
    """Deletes all but the newest `keep` checkpoints, and partial ones of a killed process.

    Never deletes that of iteration `protect`, the best one.
    """
    for path in (run / "checkpoints").glob(".partial-*"):
        shutil.rmtree(path, ignore_errors=True)
    for iteration, path in list_checkpoints(run)[: -max(keep, 1)]:
        if iteration != protect:
            # Renamed first: a kill in the middle of the deletion must not leave half a checkpoint
            # under its name.
            hidden = path.parent / f".partial-{path.name}-{os.getpid()}"
            path.rename(hidden)
            shutil.rmtree(hidden, ignore_errors=True)
