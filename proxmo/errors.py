"""The errors of proxmo; each text names the wrong value, the expected one, and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ProxmoError(Exception):
    """Base of every error proxmo raises on purpose; the CLI prints one line and exits with 1."""


class UsageError(ProxmoError):
    """The request names something unknown or contradicts itself; the CLI exits with 2."""


class ConfigError(UsageError):
    """A configuration key or value is wrong."""


class UnknownNameError(UsageError):
    """A name (environment, method, preset, key ...) is not known; the text proposes near ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names)}."
        super().__init__(f"unknown {kind} {name!r}; {hint}")


class MissingDependencyError(ProxmoError):
    """A package is not installed; the text names the command that installs it."""


class DataError(ProxmoError):
    """A file or directory is missing or has the wrong content."""


class CheckpointError(ProxmoError):
    """A directory is not a checkpoint, or a checkpoint cannot be saved."""


class RolloutError(ProxmoError):
    """No episode of an iteration could be finished."""


class TrainingError(ProxmoError):
    """An update cannot be computed: not finite again and again, or out of memory."""


class ApiError(ProxmoError):
    """An API refuses every request, or no server answers."""
