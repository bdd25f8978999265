"""Credit methods by name: a decorator registers one, `module:name` finds one elsewhere."""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import numbers
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from proxmo.errors import ConfigError, UnknownNameError


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A state that contributed to the baseline of a step.

    Attributes:
        row: the caller's row where the state first occurs.
        similarity: to the step's state, -1 to 1.
        weight: share of the baseline that the steps from this state have together.
        step_return: their mean return.
        count: how many they are.
        text: the observation, when states are text.
    """

    row: int
    similarity: float
    weight: float
    step_return: float
    count: int
    text: str | None


@dataclass(frozen=True, slots=True)
class Parts:
    """What a method returns for the S rows it was given.

    Attributes:
        episode: (S,) episode part of the advantage.
        step: (S,) step part before omega.
        omega: weight of the step part.
        diagnostics: metrics by name, `credit/...`.
        neighbours: maps a row to the states its baseline came from, for methods that have one.
        modulation: (S,) weight inside the episode part, for methods that have one.
    """

    episode: NDArray[np.float64]
    step: NDArray[np.float64]
    omega: float = 1.0
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    neighbours: Callable[[int], list[Neighbour]] | None = None
    modulation: NDArray[np.float64] | None = None

    @property
    def advantage(self) -> NDArray[np.float64]:
        """(S,) episode + omega * step."""
        return self.episode + self.omega * self.step


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
        UnknownNameError: no such name, or no such callable in the module.
        ConfigError: no string, or the module cannot be imported.
    """
    if not isinstance(name, str):
        raise ConfigError(
            f"credit method is {name!r}; expected a registered name or module:name "
            "(@credit.method registers a function)"
        )
    _load_own_methods()
    if name in _METHODS:
        return _METHODS[name]
    if ":" in name:
        return find_callable(name, "credit method")
    raise UnknownNameError("credit method", name, _METHODS)


def find_callable(reference: str, kind: str) -> Callable[..., Any]:
    """The callable that `module:name` refers to."""
    module_name, _, attribute = reference.partition(":")
    try:
        module = importlib.import_module(module_name)
    except (ImportError, SyntaxError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{kind} {reference!r}: cannot import {module_name!r} ({error}); expected module:name "
            "of a function on the Python path"
        ) from error
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
    """Raise ConfigError for options a method does not have, misses, or has of another type."""
    known = method_options(name)
    for option in options:
        if option not in known:
            near = difflib.get_close_matches(option, known, n=3, cutoff=0.5)
            has = f"it has: {', '.join(known)}." if known else "it has none."
            hint = f"did you mean {' or '.join(near)}?" if near else has
            raise ConfigError(f"credit method {name} has no option {option!r}; {hint}")
    missing = [one for one, default in known.items() if default is inspect.Parameter.empty]
    for option in missing:
        if option not in options:
            raise ConfigError(f"credit method {name} needs the option {option!r}; pass it")
    types = _types(find_method(name))
    for option, value in options.items():
        if option in types and not _is_a(value, types[option]):
            expected = getattr(types[option], "__name__", str(types[option]))
            raise ConfigError(f"{option} of credit method {name} is {value!r}; expected {expected}")


def _types(function: Method) -> dict[str, Any]:
    """Types of the options, which are only checked where Python can tell them.

    It cannot where a module imports a type for type checkers only, or of a functools.partial.
    """
    try:
        return get_type_hints(function)
    except (NameError, TypeError):
        return {}


def _is_a(value: Any, hint: Any) -> bool:
    """Whether a value fits a plain type or a union of them; an integer is a float, nan is none."""
    allowed = get_args(hint) or (hint,)
    if Any in allowed or not all(isinstance(one, type) for one in allowed):
        return True
    if isinstance(value, (bool, np.bool_)):
        return bool in allowed
    if isinstance(value, numbers.Real) and float in allowed:
        return value == value
    if isinstance(value, numbers.Integral) and int in allowed:
        return True
    return isinstance(value, tuple(one for one in allowed if one not in (int, float, bool)))


@functools.cache
def _load_own_methods() -> None:
    """Import every module of this package: a method's file registers it by being there."""
    package = importlib.import_module("proxmo.credit")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"proxmo.credit.{module.name}")
