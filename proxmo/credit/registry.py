"""Credit methods by name: a decorator registers one, `module:name` finds one outside this package."""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo.errors import ConfigError, UnknownNameError


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A state that contributed to the baseline of a step.

    `row` is the caller's row where the state first occurs, `weight` the share of the baseline its `count` rows have
    together, `step_return` their mean.
    """

    row: int
    similarity: float
    weight: float
    step_return: float
    count: int
    text: str | None


@dataclass(frozen=True, slots=True)
class Parts:
    """What a method returns for S rows: advantage = episode + omega * step.

    `neighbours(position)` tells which states the baseline of a row came from, for methods that have them; their `row`
    is a position in Rows.
    """

    episode: NDArray[np.float64]
    step: NDArray[np.float64]
    omega: float = 1.0
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    neighbours: Callable[[int], list[Neighbour]] | None = None


Method = Callable[..., Parts]
_METHODS: dict[str, Method] = {}


def method(name: str) -> Callable[[Method], Method]:
    """Register a function `(rows: Rows, *, option=default, ...) -> Parts` as a credit method."""

    def register(function: Method) -> Method:
        _METHODS[name] = function
        return function

    return register


def method_names() -> list[str]:
    """The registered names, sorted."""
    _load_own_methods()
    return sorted(_METHODS)


def find_method(name: str) -> Method:
    """The method of a registered name or of `module:name`.

    Raises:
        UnknownNameError: no such name, or the module has no such callable.
    """
    _load_own_methods()
    if name in _METHODS:
        return _METHODS[name]
    if ":" in name:
        return find_callable(name, "credit method")
    raise UnknownNameError("credit method", name, _METHODS)


def find_callable(reference: str, kind: str) -> Callable[..., Any]:
    """The callable `module:name` refers to."""
    module_name, _, attribute = reference.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigError(f"{kind} {reference!r}: cannot import {module_name} ({error})") from error
    found = getattr(module, attribute, None)
    if not callable(found):
        callables = [name for name, value in vars(module).items() if callable(value)]
        raise UnknownNameError(f"{kind} in {module_name}", attribute, callables)
    return found


def method_options(name: str) -> dict[str, Any]:
    """The options of a method with their defaults."""
    parameters = inspect.signature(find_method(name)).parameters.values()
    return {one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY}


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Raise ConfigError for an option the method does not have, with near ones."""
    known = method_options(name)
    for option in options:
        if option not in known:
            near = difflib.get_close_matches(option, known, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else f"it has: {', '.join(known)}."
            raise ConfigError(f"credit method {name} has no option {option!r}; {hint}")


def _load_own_methods() -> None:
    """Import every module of this package once: a method file registers itself by being there."""
    package = importlib.import_module("proxmo.credit")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"proxmo.credit.{module.name}")
