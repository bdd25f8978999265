"""Checks of arguments that all environments take; what does not fit is an InvalidOptionError."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import signature
from typing import Any

import gymnasium

from proxmo_envs.errors import InvalidOptionError, unknown

# What the value of a reset option has to be: its type, and how a message calls that.
Kinds = Mapping[str, tuple[type | tuple[type, ...], str]]


def reset_option(options: object, kinds: Kinds) -> tuple[str, Any] | None:
    """Return name and value of the one option that `reset` was given; None where it was none."""
    if options is None:
        return None
    if not isinstance(options, Mapping):
        raise InvalidOptionError(
            f"reset options are a mapping such as {{'task_id': ID}}, got {options!r:.100}"
        )
    for name in options:
        if name not in kinds:
            raise InvalidOptionError(unknown("reset option", name, kinds))
    if len(options) > 1:
        raise InvalidOptionError(f"reset options: give {' or '.join(kinds)}, not both")
    for name, value in options.items():
        kind, called = kinds[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise InvalidOptionError(f"reset option {name} is {called}, got {value!r:.100}")
        return name, value
    return None


def check_names(world: type[gymnasium.Env[Any, Any]], given: Iterable[str]) -> None:
    """Refuse names of arguments that neither an environment nor `gymnasium.make` has."""
    known = {*signature(world).parameters, *signature(gymnasium.make).parameters}
    for name in given:
        if name not in known:
            raise InvalidOptionError(unknown("argument", name, known - {"id", "kwargs"}))


def check_flag(name: str, value: object) -> None:
    """Refuse what is no truth value: the text "no" would count as one that is true."""
    if not isinstance(value, bool):
        raise InvalidOptionError(
            f"{name} is a truth value (in JSON true, false), got {value!r:.100}"
        )
