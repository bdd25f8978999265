"""Writes the tables of docs/configuration.md: python docs/configuration.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tomli_w

from proxmo.config import Config
from proxmo.config_files import PRESET_DIRECTORY, preset_names
from proxmo.config_loading import NONE, bounds, fields, to_table

KINDS = {"string": "text", "object": "table", "boolean": "true or false"}
PAGE = Path(__file__).with_suffix(".md")
MARK = "<!-- `python docs/configuration.py` writes all below this line -->\n"


def page() -> str:
    """Return the page: its text up to the mark, then the tables of presets and keys."""
    text, mark, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    return text + mark + "".join(f"{line}\n" for line in (*_presets(), *_sections()))


def _presets() -> Iterator[str]:
    yield from ("", "| preset | contents |", "| --- | --- |")
    for name in preset_names():
        first = (PRESET_DIRECTORY / f"{name}.toml").read_text(encoding="utf-8").splitlines()[0]
        yield f"| `{name}` | {first.removeprefix('# ')} |"


def _sections() -> Iterator[str]:
    defaults, current = to_table(Config()), ""
    for key, field in fields().items():
        section, _, name = key.partition(".")
        if section != current:
            meaning = type(getattr(Config(), section)).__doc__ if name else "Of the whole run."
            yield from ("", f"## {section}", "", meaning or "")
            yield from ("", "| key | default | values | meaning |", "| --- | --- | --- | --- |")
            current = section
        default = defaults[section][name] if name else defaults[section]
        meaning = " ".join(field["description"].split())
        cells = (f"`{key}`", f"`{_toml(default)}`", _values(field), meaning)
        yield f"| {' | '.join(cell.replace('<', '&lt;') for cell in cells)} |"


def _toml(value: Any) -> str:
    if value == {}:
        return "{}"
    return NONE if value == NONE else tomli_w.dumps({"x": value}).partition("=")[2].strip()


def _values(field: Mapping[str, Any]) -> str:
    """Return type, range or choices in words."""
    words = KINDS.get(field["type"], field["type"]) + bounds(field)
    if "enum" in field:
        words = ", ".join(f'`"{one}"`' for one in field["enum"])
    return words + (f" or `{NONE}`" if field["optional"] else "")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
