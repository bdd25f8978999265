"""Where a configuration comes from: TOML presets layered left to right, flags, `--set` texts.

Everything is kept as plain nested tables until the last layer is in; only then is the dataclass
tree built, so that types and values are checked once, on what the run will really use.
"""

from __future__ import annotations

import dataclasses
import difflib
import sys
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from proxmo.config import Config
from proxmo.config_checks import check_values
from proxmo.errors import ConfigError, DataError, UnknownNameError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Table = dict[str, Any]

PRESET_DIRECTORY = Path(__file__).parent / "presets"
# TOML has no null; this word stands for None in every field that may be None.
NONE = "none"
# The preset of the embedded model lies under all other layers as long as that model is trained;
# worlds that need other settings than "tiny" have one of their own.
EMBEDDED_MODEL = "tiny"
_EMBEDDED_PRESETS = {"WebShop-v0": "tiny-webshop"}
# What only fits the key beside it: a layer that changes the key starts these afresh, so that other
# games do not inherit the size of the generated ones, nor GRPO the options of ProxMO.
_BELONGS_TO = {
    "env.id": ("data", "split", "max_steps", "kwargs"),
    "env.data": ("max_steps", "kwargs"),
    "credit.method": ("options",),
}


def resolve(
    presets: Sequence[str] = (),
    flags: Mapping[str, Any] | None = None,
    assignments: Sequence[str] = (),
    base: Config | None = None,
) -> Config:
    """Layer presets, flags and assignments into the configuration of a run.

    Args:
        presets: names of presets or paths of TOML files, later ones win.
        flags: dotted keys with Python values; a value of None means the flag was not given.
        assignments: texts like `optim.lr=1e-5`: a TOML value, or a bare string.
        base: what lies under the layers (the saved configuration of a resumed run); None takes the
            defaults, with the preset `tiny` (or that of the world, such as `tiny-webshop`) on them
            when the embedded model is trained.

    Raises:
        ConfigError: a key, a type or a value is wrong.
        UnknownNameError: there is no such preset.
    """
    layers = [_read_preset(name) for name in presets]
    layers.append(_nest({key: value for key, value in (flags or {}).items() if value is not None}))
    if base is not None:
        layers.insert(0, _to_table(base))
    elif _asked(layers, assignments, "model", "name") == EMBEDDED_MODEL:
        world = _meaning("env.id", _asked(layers, assignments, "env", "id"))
        embedded = _EMBEDDED_PRESETS.get(world, EMBEDDED_MODEL)
        if embedded not in presets:
            layers.insert(0, _read_preset(embedded))
    table: Table = {}
    for layer in layers:
        _merge(table, layer)
    for assignment in _names_first(assignments):
        _assign(table, assignment)
    return from_table(table)


def load_toml(path: Path) -> Config:
    """Read the configuration a run wrote with `dump_toml`."""
    return from_table(_read_table(path))


def dump_toml(config: Config) -> str:
    """Write every field as TOML; `load_toml` gives the equal configuration back."""
    return tomli_w.dumps(_to_table(config))


def differing_keys(one: Config, other: Config) -> list[str]:
    """Return the dotted keys in which two configurations differ."""
    first, second = _flatten(_to_table(one)), _flatten(_to_table(other))
    return sorted(key for key in first.keys() | second.keys() if first.get(key) != second.get(key))


def preset_names() -> list[str]:
    """Return the names of the presets that come with the package."""
    return sorted(path.stem for path in PRESET_DIRECTORY.glob("*.toml"))


def from_table(table: Mapping[str, Any]) -> Config:
    """Build and check the configuration that nested tables describe."""
    config: Config = _build(Config, table, "")
    check_values(config)
    return config


def _read_preset(name: str) -> Table:
    if name.endswith(".toml"):
        return _read_table(Path(name))
    if name not in preset_names():
        raise UnknownNameError("preset", name, preset_names())
    return _read_table(PRESET_DIRECTORY / f"{name}.toml")


def _read_table(path: Path) -> Table:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the configuration {path}: {error}") from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error


def _asked(layers: Iterable[Table], assignments: Sequence[str], section: str, key: str) -> Any:
    """Return a value the layers end up with, before anything is checked."""
    table: Table = {section: {key: getattr(getattr(Config(), section), key)}}
    for layer in layers:
        _merge(table, layer)
    for assignment in _names_first(assignments):
        _assign(table, assignment)
    found = table[section]
    return found.get(key) if isinstance(found, dict) else None


def _merge(table: Table, layer: Mapping[str, Any], prefix: str = "") -> None:
    """Lay a layer over a table, in place; tables merge, all else (and an empty table) replaces."""
    for key in _names_first(layer, prefix):
        value, path = layer[key], f"{prefix}{key}"
        below = table.get(key)
        if isinstance(value, dict) and isinstance(below, dict) and (value or prefix == ""):
            _merge(below, value, f"{path}.")
            continue
        _drop_belongings(table, path, value)
        table[key] = _copy(value)


def _names_first(paths: Iterable[str], prefix: str = "") -> list[str]:
    """Order keys so that a changed key drops its belongings before the layer sets new ones."""
    order = {key: place for place, key in enumerate(_BELONGS_TO)}
    return sorted(paths, key=lambda one: order.get(prefix + one.partition("=")[0], len(order)))


def _drop_belongings(table: Table, path: str, value: Any) -> None:
    if path not in _BELONGS_TO:
        return
    section, key = path.split(".")
    current = table.get(key, getattr(getattr(Config(), section), key))
    if _meaning(path, current) != _meaning(path, value):
        for belonging in _BELONGS_TO[path]:
            table.pop(belonging, None)


def _meaning(path: str, value: Any) -> Any:
    """Return the same for values that say the same in different words."""
    if path == "env.id":
        return str(value).rpartition(":")[2]
    if path == "env.data" and value in (None, NONE, "bundled"):
        return "generated"
    return value


def _assign(table: Table, assignment: str) -> None:
    """Carry out one `a.b=c`; a whole table given this way replaces the old one."""
    path, equals, text = assignment.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise ConfigError(f"--set {assignment!r} is not of the form key=value, like optim.lr=1e-5")
    value = _parse_value(text.strip(), _field_type(keys))
    for depth, key in enumerate(keys[:-1]):
        below = table.setdefault(key, {})
        if not isinstance(below, dict):
            raise ConfigError(f"{'.'.join(keys[: depth + 1])} is a value, it has no {keys[-1]!r}")
        table = below
    _drop_belongings(table, ".".join(keys), value)
    table[keys[-1]] = value


def _parse_value(text: str, expected: Any) -> Any:
    """Read a TOML value; what is none, and what a text field gets, is the bare string itself."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    if str in _alternatives(expected) and not isinstance(value, str):
        return text
    return value


def _field_type(keys: Sequence[str]) -> Any:
    """Return the declared type of a dotted key, None when there is no such field."""
    current: Any = Config
    for key in keys:
        if not dataclasses.is_dataclass(current):
            return None
        current = typing.get_type_hints(current).get(key)
    return current


def _build(cls: Any, table: Any, prefix: str) -> Any:
    if not isinstance(table, Mapping):
        raise ConfigError(f"{prefix[:-1]} is {table!r}, expected a table of keys")
    hints = typing.get_type_hints(cls)
    for key in table:
        if key not in hints:
            raise _unknown_key(f"{prefix}{key}", table[key])
    values = {}
    for key, value in table.items():
        if dataclasses.is_dataclass(hints[key]):
            values[key] = _build(hints[key], value, f"{prefix}{key}.")
        else:
            values[key] = _convert(f"{prefix}{key}", value, hints[key])
    return cls(**values)


def _convert(key: str, value: Any, expected: Any) -> Any:
    alternatives = _alternatives(expected)
    if type(None) in alternatives and (value is None or value == NONE):
        return None
    if float in alternatives and type(value) is int:
        return float(value)
    for alternative in alternatives:
        # `type(...) is`: True is no integer here.
        if type(value) is (typing.get_origin(alternative) or alternative):
            return _copy(value)
    words = {int: "an integer", float: "a number", str: "a text", bool: "true or false"}
    wanted = words.get(alternatives[0], "a table")
    if type(None) in alternatives:
        wanted += f' or "{NONE}"'
    raise ConfigError(f"{key} is {value!r} ({type(value).__name__}), expected {wanted}")


def _alternatives(expected: Any) -> tuple[Any, ...]:
    if isinstance(expected, types.UnionType):
        return typing.get_args(expected)
    return (expected,)


def _to_table(config: Config) -> Table:
    def explicit(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: explicit(below) for key, below in value.items()}
        return NONE if value is None else value

    table: Table = explicit(dataclasses.asdict(config))
    return table


def _nest(flat: Mapping[str, Any]) -> Table:
    table: Table = {}
    for path, value in flat.items():
        *sections, key = path.split(".")
        below = table
        for section in sections:
            below = below.setdefault(section, {})
        below[key] = value
    return table


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Table:
    flat: Table = {}
    for key, value in table.items():
        if isinstance(value, dict) and value:
            flat.update(_flatten(value, f"{prefix}{key}."))
        elif not isinstance(value, dict):
            flat[f"{prefix}{key}"] = value
    return flat


def _unknown_key(path: str, value: Any) -> ConfigError:
    """Name the key that does not exist and the ones that were probably meant."""
    if isinstance(value, Mapping) and value:
        key, below = next(iter(value.items()))
        return _unknown_key(f"{path}.{key}", below)
    defaults = _to_table(Config())
    known = [*_flatten(defaults), "env.kwargs", "credit.options"]
    last = path.rpartition(".")[2]
    near = [key for key in known if key.rpartition(".")[2] == last]
    near = near or difflib.get_close_matches(path, known, n=3, cutoff=0.7)
    section = defaults.get(path.partition(".")[0])
    if near:
        hint = f"did you mean {' or '.join(sorted(set(near)))}?"
    elif isinstance(section, dict):
        hint = f"known here: {', '.join(section)}."
    else:
        hint = f"known sections: {', '.join(defaults)}."
    return ConfigError(f"unknown configuration key {path!r}; {hint}")


def _copy(value: Any) -> Any:
    """Copy tables and lists, so that no two configurations share one."""
    if isinstance(value, Mapping):
        return {key: _copy(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_copy(below) for below in value]
    return value
