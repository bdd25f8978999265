"""Types for the options of credit methods.

A signature says what a value may be, `def mine(rows: Rows, *, tau: Positive = 0.1) -> Parts`, and
`check_options` holds the caller to it.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import numpy as np
from annotated_types import Ge, Gt, Le, Lt

from proxmo.errors import ConfigError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Positive = Annotated[float, Gt(0)]
Fraction = Annotated[float, Ge(0), Le(1)]
# Decay of earlier observations: at 1 they would never fade.
Decay = Annotated[float, Ge(0), Lt(1)]
Count = Annotated[int, Ge(1)]
# How the values of a group become relative: (x - mean) / std, or x - mean.
Norm = Literal["zscore", "mean"]
# Steps that are compared: those of the same task, or of all tasks.
Scope = Literal["group", "batch"]
# Steps left out of a baseline: none, the step itself, all of its episode.
Exclude = Literal["none", "self", "episode"]


def check_options(name: str, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Check options against the signature of a credit method.

    Raises:
        ConfigError: an option that the method does not have, misses, or has of another type.
    """
    known = options_of(function)
    for option in options:
        if option not in known:
            near = difflib.get_close_matches(option, known, n=3, cutoff=0.5)
            has = f"it has: {', '.join(known)}." if known else "it has none."
            hint = f"did you mean {' or '.join(near)}?" if near else has
            raise ConfigError(f"credit method {name} has no option {option!r}; {hint}")
    for option, default in known.items():
        if default is inspect.Parameter.empty and option not in options:
            raise ConfigError(f"credit method {name} needs the option {option!r}; pass it")
    types = _types(function)
    for option, value in options.items():
        if option in types:
            _check_value(f"{option} of credit method {name}", value, types[option])


def options_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The options of a credit method with their defaults."""
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY}


def _check_value(what: str, value: Any, type_: TypeAdapter[Any]) -> None:
    from pydantic import ValidationError

    try:
        type_.validate_python(value.item() if isinstance(value, np.generic) else value, strict=True)
    except ValidationError as error:
        expected = " or ".join(
            one["msg"].replace("Input should be", "expected") for one in error.errors()
        )
        raise ConfigError(f"{what} is {value!r}; {expected}") from error


@functools.cache
def _types(function: Callable[..., Any]) -> dict[str, TypeAdapter[Any]]:
    """Types of the options, as far as Python can tell.

    It cannot where a module imports a type for type checkers only, or of a functools.partial.
    """
    from pydantic import ConfigDict, TypeAdapter

    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError):
        return {}
    lenient = ConfigDict(arbitrary_types_allowed=True)
    return {
        name: TypeAdapter(hints[name], config=lenient)
        for name in options_of(function)
        if name in hints
    }
