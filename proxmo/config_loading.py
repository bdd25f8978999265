"""Where a configuration comes from: presets layered left to right, flags, `--set` texts.

A layer is a list of paths with values, such as (("optim", "lr"), 1e-5). Types and ranges are
checked once, when the last layer is in: on the values the run will use.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from proxmo.config import Config, CreditConfig
from proxmo.config_files import Table, TOMLDecodeError, parse_toml, read_preset, read_toml
from proxmo.errors import ConfigError, UnknownNameError

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

    from proxmo_envs.description import EnvDescription

KeyPath = tuple[str, ...]
Layer = list[tuple[KeyPath, Any]]

# TOML has no null; this word stands for None in every field that may be None.
NONE = "none"
# Name of the embedded model. While it is trained, a preset lies under all other layers.
EMBEDDED_MODEL = "tiny"
# Keys that only fit the value of another key. A layer that changes that value starts them afresh:
# other games do not inherit the size of the generated ones, nor GRPO the options of ProxMO.
_BELONGS_TO: dict[KeyPath, tuple[str, ...]] = {
    ("env", "id"): ("data", "split", "max_steps", "kwargs"),
    ("env", "data"): ("max_steps", "kwargs"),
    ("credit", "method"): ("options",),
}
# Agents have further styles, which only they can read.
_STYLES = ("think", "terse", "bare")
# What the trainer passes to a credit method: the columns of `proxmo.credit.assign`.
_CREDIT_COLUMNS = {"group", "episode", "step", "reward", "success", "state"}
_CREDIT_COLUMNS |= {"truncated", "action", "penalty"}
_ENGINES = ("transformers", "vllm", "vllm-server")
_SECTIONS = {one.name for one in dataclasses.fields(Config)} - {"seed"}
_DEEPEST = 100
_DEVICE = re.compile(r"auto|cpu|cuda(:\d+)?")


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
        base: configuration under the layers (the saved one of a resumed run); None takes the
            defaults, and on them the embedded model's preset for the environment where that model
            is trained.

    Raises:
        ConfigError: a key, a type or a value is wrong.
        UnknownNameError: there is no such preset.
    """
    layers = [list(_leaves(table)) for name in presets for table in read_preset(name)]
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    layers.append([(tuple(key.split(".")), value) for key, value in given.items()])
    layers.append([_read_assignment(text) for text in assignments])
    if base is not None:
        layers.insert(0, list(_leaves(to_table(base))))
    else:
        asked = _stack(layers)
        if asked.get(("model", "name"), EMBEDDED_MODEL) == EMBEDDED_MODEL:
            # The default environment needs no import of gymnasium to be known.
            named = ("env", "id") in asked
            embedded = _describe(asked).embedded.preset if named else EMBEDDED_MODEL
            if embedded not in presets:
                layers[:0] = [list(_leaves(table)) for table in read_preset(embedded)]
    return from_table(_nest(_stack(layers)))


def load_toml(path: Path) -> Config:
    """Read the configuration a run wrote with `dump_toml`."""
    return from_table(read_toml(path))


def dump_toml(config: Config) -> str:
    """Write every field as TOML; `load_toml` gives the equal configuration back."""
    return tomli_w.dumps(to_table(config))


def differing_keys(one: Config, other: Config) -> list[str]:
    """Return the dotted keys in which two configurations differ."""
    first, second = dict(_leaves(to_table(one))), dict(_leaves(to_table(other)))
    paths = {path for path in first.keys() | second.keys() if first.get(path) != second.get(path)}
    return sorted(".".join(path) for path in paths)


def to_table(config: Config) -> Table:
    """Return nested tables of every field, None as the word TOML has for it."""

    def explicit(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: explicit(below) for key, below in value.items()}
        return NONE if value is None else value

    table: Table = explicit(dataclasses.asdict(config))
    return table


def from_table(table: Mapping[str, Any]) -> Config:
    """Build and check the configuration that nested tables describe."""
    from pydantic import ValidationError

    known = fields()
    leaves: Layer = []
    for path, value in _leaves(table):
        optional = known.get(".".join(path), {}).get("optional")
        leaves.append((path, None if optional and value == NONE else value))
    try:
        # Strict pydantic accepts tables as dataclasses from JSON only. A TOML date becomes a text.
        config = _adapter().validate_json(json.dumps(_nest(leaves), default=str))
    except ValidationError as invalid:
        errors = invalid.errors(include_url=False)
        unknown = [one for one in errors if one["type"] == "unexpected_keyword_argument"]
        raise _explain((unknown or errors)[0]) from None
    _check_together(config)
    return config


@functools.cache
def _adapter() -> TypeAdapter[Config]:
    from pydantic import TypeAdapter  # not needed for --help

    return TypeAdapter(Config)


@functools.cache
def fields() -> dict[str, Table]:
    """Return the JSON schema of every field by its dotted key, with `optional` where None is one.

    Among the entries are `type`, `description`, `enum`, `minimum`, `exclusiveMinimum`, `maximum`.
    """
    schema = _adapter().json_schema()
    found = {}
    for name, entry in schema["properties"].items():
        section = schema["$defs"][entry["$ref"].rpartition("/")[2]] if "$ref" in entry else None
        for key, one in section["properties"].items() if section else [("", entry)]:
            optional = "anyOf" in one
            found[f"{name}.{key}".rstrip(".")] = {
                **one,
                **(one["anyOf"][0] if optional else {}),
                "optional": optional,
            }
    return found


def bounds(field: Mapping[str, Any]) -> str:
    """Return the range of a number in words that follow "a number"."""
    least, above = field.get("minimum"), field.get("exclusiveMinimum")
    words = f" of {least:g} or more" if least is not None else ""
    if above is not None:
        words = f" above {above:g}"
    if "maximum" in field:
        words += f" and at most {field['maximum']:g}"
    return words


def _explain(error: ErrorDetails) -> ConfigError | UnknownNameError:
    """Say in one line which key is wrong, its value and what was expected."""
    key, value, kind = ".".join(map(str, error["loc"])), error["input"], error["type"]
    if kind == "unexpected_keyword_argument":
        return _unknown_key(key, value)
    if kind == "dataclass_type":
        return ConfigError(f"{key} is {value!r}, expected a table of keys")
    if not key:  # of the text as a whole, such as "recursion limit exceeded"
        return ConfigError(f"the configuration has a value no run can use: {error['msg']}")
    field = fields()[key]
    if kind == "literal_error" and isinstance(value, str):
        return UnknownNameError(key, value, field["enum"])
    if kind == "predicate_failed":
        return ConfigError(f"{key} is empty, expected a name; leave it out for the default")
    if kind.startswith(("greater", "less", "finite")):
        value = float(value) if field["type"] == "number" else value
        return ConfigError(f"{key} is {value}, expected a number{bounds(field)}")
    words = {"integer": "an integer", "number": "a number", "string": "a text", "object": "a table"}
    wanted = words.get(field["type"], "true or false")
    if field["optional"]:
        wanted += f' or "{NONE}"'
    return ConfigError(f"{key} is {value!r} ({type(value).__name__}), expected {wanted}")


def _unknown_key(key: str, value: Any) -> ConfigError:
    """Name the key that does not exist and the ones that were probably meant."""
    path, _ = next(_leaves(value, (key,)), ((key,), None))
    key, known = ".".join(path), list(fields())
    section, last = key.partition(".")[0], key.rpartition(".")[2]
    bare = re.sub("[\"']", "", key)
    if any(f"{bare}.".startswith(f"{one}.") for one in known):
        return ConfigError(f"a dotted configuration key must not be quoted: write {bare}")
    near = [one for one in known if one.rpartition(".")[2] == last]
    near = near or difflib.get_close_matches(key, known, n=3, cutoff=0.7)
    here = [one.partition(".")[2] for one in known if one.startswith(f"{section}.")]
    if near:
        hint = f"did you mean {' or '.join(sorted(near))}?"
    elif here:
        hint = f"known here: {', '.join(here)}."
    else:
        hint = f"known sections: {', '.join(dict.fromkeys(k.partition('.')[0] for k in known))}."
    return ConfigError(f"unknown configuration key {key!r}; {hint}")


def _check_together(config: Config) -> None:
    """Raise ConfigError for values that do not fit together."""
    model, rollout = config.model, config.rollout
    if not _DEVICE.fullmatch(model.device):
        raise ConfigError(
            f'model.device is {model.device!r}, expected "auto", "cpu", "cuda" or "cuda:1"'
        )
    if config.prompt.style not in _STYLES:
        raise UnknownNameError("prompt.style", config.prompt.style, _STYLES)
    if rollout.engine not in _ENGINES and ":" not in rollout.engine:
        raise UnknownNameError("rollout.engine", rollout.engine, _ENGINES)
    _check_options(config)
    served = rollout.engine == "vllm-server"
    if ":" not in rollout.engine and served != (rollout.engine_url is not None):
        raise ConfigError(
            f"rollout.engine is {rollout.engine!r} and rollout.engine_url {rollout.engine_url!r}; "
            "a vllm-server needs an address, the other engines take none"
        )
    if model.load_in_4bit and not model.lora_rank:
        raise ConfigError("model.load_in_4bit trains adapters only; set model.lora_rank too")
    if model.load_in_4bit and rollout.engine != "transformers":
        raise ConfigError(
            "weights of 4 bits cannot be handed to another engine; "
            "set rollout.engine = transformers"
        )
    if model.load_in_4bit and model.parallel == "fsdp":
        raise ConfigError("fsdp cannot shard weights of 4 bits; set model.parallel = data")
    if rollout.lag and rollout.engine == "transformers":
        raise ConfigError(
            "rollout.lag is 1, but the engine transformers samples with the weights being trained; "
            "it needs rollout.engine = vllm or vllm-server"
        )


def _check_options(config: Config) -> None:
    """Raise ConfigError for options that cannot reach a credit method, and for nan in any table."""
    keys = {one.name for one in dataclasses.fields(CreditConfig)} - {"options"}
    for name in config.credit.options:
        if name in keys:
            raise ConfigError(f"credit.options.{name} has a key of its own: set credit.{name}")
        if name in _CREDIT_COLUMNS:
            raise ConfigError(f"credit.options.{name} is no option of a method: leave it out")
    for path, value in _leaves(to_table(config)):
        if _holds_nan(value):
            raise ConfigError(f"{'.'.join(path)} is {value!r}, expected a value without nan")


def _holds_nan(value: Any) -> bool:
    if isinstance(value, Mapping):
        value = list(value.values())
    return any(map(_holds_nan, value)) if isinstance(value, list) else value != value


def _read_assignment(assignment: str) -> tuple[KeyPath, Any]:
    """Read one `a.b=c`, c a TOML value or a bare text."""
    key, equals, text = (part.strip() for part in assignment.partition("="))
    path = tuple(key.split("."))
    if not equals or not all(path):
        raise ConfigError(f"--set {assignment!r} is not of the form key=value, like optim.lr=1e-5")
    try:
        value = parse_toml(f"value = {text}")["value"]
    except TOMLDecodeError:
        return path, text
    is_text = fields().get(key, {}).get("type") == "string"
    return path, text if is_text and not isinstance(value, str) else value


def _stack(layers: Iterable[Layer]) -> dict[KeyPath, Any]:
    """Lay layers over each other; an empty table, and one given by `--set`, replaces the old."""
    flat: dict[KeyPath, Any] = {}
    places = {path: place for place, path in enumerate(_BELONGS_TO)}
    for layer in layers:
        # A changed key drops what belongs to it before the layer sets that anew.
        for path, value in sorted(layer, key=lambda one: places.get(one[0], len(places))):
            if path in _BELONGS_TO and _meaning(path, value, flat) != _meaning(path, ..., flat):
                for name in _BELONGS_TO[path]:
                    _drop(flat, (path[0], name))
            _drop(flat, path)
            flat.update(_leaves(value, path))
    return flat


def _drop(flat: dict[KeyPath, Any], path: KeyPath) -> None:
    """Remove a path with everything below it, and a value above it."""
    for old in list(flat):
        depth = min(len(old), len(path))
        if old[:depth] == path[:depth]:
            del flat[old]


def _meaning(path: KeyPath, value: Any, flat: Mapping[KeyPath, Any]) -> Any:
    """Return the same for values that say the same in different words; `...` is the current."""
    if value is ...:
        value = flat.get(path, getattr(getattr(Config(), path[0]), path[1]))
    if path == ("env", "id"):
        return str(value).rpartition(":")[2]
    if path == ("env", "data") and value in (None, NONE, _describe(flat).default_data):
        return None
    return value


def _describe(flat: Mapping[KeyPath, Any]) -> EnvDescription:
    """Return the description of the environment; its module may have one, so import it."""
    from proxmo_envs import InvalidOptionError, description_of
    from proxmo_envs.creators import import_module_of

    env_id = str(flat.get(("env", "id"), Config().env.id))
    with suppress(InvalidOptionError):  # whoever makes the environment reports it
        import_module_of(env_id, "environment")
    return description_of(env_id)


def _leaves(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the values of nested tables with their paths; an empty table is a value, too.

    Only an empty section says nothing.
    """
    if len(path) > _DEEPEST:
        raise ConfigError(f"{'.'.join(path[:3])}... nests tables deeper than {_DEEPEST} levels")
    section = not path or (len(path) == 1 and path[0] in _SECTIONS)
    if isinstance(value, Mapping) and (value or section):
        for key, below in value.items():
            yield from _leaves(below, (*path, key))
    else:
        yield path, value


def _nest(leaves: Mapping[KeyPath, Any] | Layer) -> Table:
    table: Table = {}
    for (*sections, key), value in leaves.items() if isinstance(leaves, Mapping) else leaves:
        below = table
        for section in sections:
            below = below.setdefault(section, {})
        below[key] = value
    return table
