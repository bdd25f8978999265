"""Presets and other TOML files, read into tables that nobody has checked yet."""

from __future__ import annotations

import os
import sys
from importlib import resources
from pathlib import Path
from typing import Any

from proxmo.errors import ConfigError, DataError, UnknownNameError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Table = dict[str, Any]
TOMLDecodeError = tomllib.TOMLDecodeError
PRESET_DIRECTORY = Path(__file__).parent / "presets"


def preset_names() -> list[str]:
    """Return the names of the presets that come with the package."""
    return sorted(path.stem for path in PRESET_DIRECTORY.glob("*.toml"))


def read_preset(name: str, folder: Path = Path(), above: tuple[str, ...] = ()) -> list[Table]:
    """Return the tables of the preset that a preset names as `base`, and of its own, in this order.

    Args:
        name: one of ours, the path of a TOML file, or `package:file.toml`.
        folder: where a relative path starts.
        above: files of the presets that lie on this one.

    Raises:
        ConfigError: a file is no TOML, or its `base` is no text or part of a cycle.
        DataError: a file cannot be read.
        UnknownNameError: there is no such preset.
    """
    path = _preset_path(name, folder)
    table = read_toml(path)
    files = (*above, os.path.realpath(path))
    if files[-1] in above:
        cycle = " -> ".join(files[above.index(files[-1]) :])
        raise ConfigError(f"presets name each other as base in a cycle: {cycle}")
    base = table.pop("base", None)
    if not isinstance(base, str | None):
        raise ConfigError(f"{path}: base is {base!r} ({type(base).__name__}), expected a text")
    under = [] if base is None else read_preset(base, path.parent, files)
    return [*under, table]


def _preset_path(name: str, folder: Path) -> Path:
    package, _, file = name.rpartition(":")
    if len(package) > 1:  # one letter is a drive
        try:
            return Path(str(resources.files(package))) / file
        except Exception as error:  # of the package's own code as well
            raise ConfigError(
                f"cannot read the configuration {name}: {type(error).__name__}: {error}; "
                "expected package:file.toml with an installed package"
            ) from error
    if name.endswith(".toml"):
        return folder / name
    if name in preset_names():
        return PRESET_DIRECTORY / f"{name}.toml"
    raise UnknownNameError("preset", name, preset_names())


def read_toml(path: Path) -> Table:
    """Read a file; raises DataError or ConfigError where it cannot."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # with or without a byte-order mark
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read the configuration {path}: {error}") from error
    try:
        return parse_toml(text)
    except TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error


def parse_toml(text: str) -> Table:
    """Parse a text; raises TOMLDecodeError, or ConfigError where it nests too deeply."""
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ConfigError("the configuration nests lists or tables too deeply") from error
