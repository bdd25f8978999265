"""Credit methods by name: a decorator registers one, `module:name` finds one elsewhere."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.options import options_of
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
        penalty: (S,) what the caller subtracts; not the method's to set.
    """

    episode: NDArray[np.float64]
    step: NDArray[np.float64]
    omega: float = 1.0
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    neighbours: Callable[[int], list[Neighbour]] | None = None
    modulation: NDArray[np.float64] | None = None
    penalty: NDArray[np.float64] | float = 0.0

    @property
    def advantage(self) -> NDArray[np.float64]:
        """(S,) episode + omega * step - penalty."""
        return self.episode + self.omega * self.step - self.penalty


Method = Callable[..., Parts]
_METHODS: dict[str, Method] = {}


def method(
    name: str, *, extends: Method | None = None, without: Collection[str] = ()
) -> Callable[[Method], Method]:
    """Register a function `(rows: Rows, *, option=default, ...) -> Parts` as a credit method.

    Args:
        name: its name.
        extends: a method whose options the function takes too, as `**options`.
        without: options of `extends` that it does not take.
    """

    def register(function: Method) -> Method:
        if extends is not None:
            _inherit_options(function, extends, without)
        _METHODS[name] = function
        return function

    return register


def _inherit_options(function: Method, base: Method, without: Collection[str]) -> None:
    """Replace `**options` in the signature of a function by the options of another one."""
    own = inspect.signature(function)
    kept = [one for one in own.parameters.values() if one.kind is not one.VAR_KEYWORD]
    hints = get_type_hints(base, include_extras=True)
    for one in inspect.signature(base).parameters.values():
        if one.kind is one.KEYWORD_ONLY and one.name not in {*without, *own.parameters}:
            kept.append(one)
            function.__annotations__[one.name] = hints[one.name]
    function.__annotations__.pop("options", None)
    function.__signature__ = own.replace(parameters=kept)  # type: ignore[attr-defined]


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
    return options_of(find_method(name))


@functools.cache
def _load_own_methods() -> None:
    """Import every module of this package: a method's file registers it by being there."""
    package = importlib.import_module("proxmo.credit")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"proxmo.credit.{module.name}")
