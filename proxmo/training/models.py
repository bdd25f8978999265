"""Which weights a run starts from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from proxmo.config import Config

if TYPE_CHECKING:
    from proxmo.training.run_directory import RunDirectory

EMBEDDED = "tiny"


def initial_model(config: Config, directory: RunDirectory, progress: Callable[..., None]) -> str:
    """Returns the directory or hub id of the initial model.

    The embedded one is built first; a run keeps a copy of it, so that resuming needs no cache.
    """
    if config.model.name != EMBEDDED:
        return config.model.name
    if directory.initial.exists():
        return str(directory.initial)
    from proxmo.training.tiny import TinyConfig, tiny_model_path

    return str(tiny_model_path(config.env, config.prompt, TinyConfig(), progress))
