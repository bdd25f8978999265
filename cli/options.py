"""Builders for the options of commands by kind of value, and the options that commands share.

A builder takes the flag, its help and its default, which it adds to the help in brackets:

    @options.count("--workers", "Processes", 2)     # --workers N  Processes  [2]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from proxmo.config import Config

_Command = TypeVar("_Command", bound=Callable[..., Any])
Decorator = Callable[[_Command], _Command]

# Parameters of commands that stand for a key of the configuration.
_KEYS = {
    "env": "env.id",
    "data": "env.data",
    "model": "model.name",
    "device": "model.device",
    "method": "credit.method",
    "tasks": "rollout.tasks",
    "group_size": "rollout.group_size",
    "iterations": "optim.iterations",
    "seed": "seed",
}
# Names of built-in models and data; they win over files of the same name.
_BUILT_IN = ("tiny", "generated", "bundled")


class Number(click.FloatRange):
    """A finite number in a range; click's own lets nan through, and inf where there is no end."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


def text(
    flag: str,
    help: str,
    default: str | float | None = None,
    *,
    metavar: str | None,
    name: str = "",
    **settings: Any,
) -> Decorator[Any]:
    """Add an option that takes any text; its parameter is called as the flag, or `name`."""
    if default is not None:
        settings["default"] = default
        help += f"  [{default:g}]" if isinstance(default, float) else f"  [{default}]"
    names = (flag, name) if name else (flag,)
    return click.option(*names, metavar=metavar, help=help, **settings)


def count(
    flag: str, help: str, default: int | None = None, *, minimum: int | None = 1, **settings: Any
) -> Decorator[Any]:
    """Add an option that takes a whole number of at least `minimum`, or any."""
    kind = int if minimum is None else click.IntRange(min=minimum)
    settings = {"metavar": "N", "type": kind, **settings}
    return text(flag, help, default, **settings)


def number(
    flag: str,
    help: str,
    default: float | None = None,
    *,
    minimum: float | None = None,
    above: float | None = None,
    maximum: float | None = None,
    metavar: str = "N",
    **settings: Any,
) -> Decorator[Any]:
    """Add an option that takes a finite number, at least `minimum` or greater than `above`."""
    low = minimum if above is None else above
    kind = Number(min=low, max=maximum, min_open=above is not None)
    return text(flag, help, default, metavar=metavar, type=kind, **settings)


def path(
    flag: str,
    help: str,
    default: str | None = None,
    *,
    metavar: str = "DIR",
    exists: bool = False,
    file: bool = True,
    directory: bool = True,
    **settings: Any,
) -> Decorator[Any]:
    """Add an option that takes a path: one that `exists`, of a `file`, of a `directory`."""
    kind = click.Path(exists=exists, file_okay=file, dir_okay=directory, path_type=Path)
    return text(flag, help, default, metavar=metavar, type=kind, **settings)


def choice(flag: str, help: str, values: tuple[str, ...], **settings: Any) -> Decorator[Any]:
    """Add an option that takes one of some words, the first of them by default."""
    return text(flag, help, values[0], metavar=None, type=click.Choice(values), **settings)


def env(help: str = "Environment", default: str | None = None) -> Decorator[Any]:
    """Add --env."""
    return text("--env", help, default, metavar="ID")


def data(help: str = "Where the tasks come from  [the environment's own]") -> Decorator[Any]:
    """Add --data."""
    return text("--data", help, metavar="PATH")


def seed(help: str, default: int | None = None, *, minimum: int | None = 0) -> Decorator[Any]:
    """Add --seed."""
    return count("--seed", help, default, minimum=minimum)


def device() -> Decorator[Any]:
    """Add --device."""
    return text("--device", "auto, cpu, cuda or cuda:1  [auto]", metavar="D")


def presets(help: str = "Preset by name or TOML file.") -> Decorator[Any]:
    """Add --preset, which may be given several times, as `presets`."""
    return text("--preset", help, name="presets", metavar="P", multiple=True)


def assignments(help: str, metavar: str = "A.B=C") -> Decorator[Any]:
    """Add --set, which may be given several times, as `assignments`."""
    return text("--set", help, name="assignments", metavar=metavar, multiple=True)


def as_json(help: str = "Print the result as JSON.") -> Decorator[Any]:
    """Add --json, as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help=help)


# Every command has it; `main` looks for it among the arguments.
debug = click.option(
    "--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."
)


def absolute(path: str | None) -> str | None:
    """Return the absolute path of a file that exists, and any other text as it is.

    Other texts are names of built-in models and data, and ids of a model hub.
    """
    # Without the first condition an empty text would be this directory.
    if not path or path in _BUILT_IN or not Path(path).exists():
        return path
    return str(Path(path).absolute())


def take_keys(parameters: dict[str, Any]) -> dict[str, Any]:
    """Take those parameters out that stand for a key of the configuration; return the keys."""
    for name in {"data", "model"} & parameters.keys():
        parameters[name] = absolute(parameters[name])
    return {key: parameters.pop(name) for name, key in _KEYS.items() if name in parameters}


def default_directory(config: Config, work: str) -> Path:
    """Return a directory under runs/ for some work of now, such as a method's training."""
    env_id = config.env.id.rpartition(":")[2].replace("/", "-")
    return Path("runs") / f"{env_id}-{work}-{config.seed}-{datetime.now():%Y%m%d-%H%M%S}"
