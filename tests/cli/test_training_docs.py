"""docs/training.md: its presets are there, its commands have the options it uses."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from proxmo.config_loading import preset_names
from proxmo_cli.main import proxmo as group

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "training.md").read_text()
LINES = [
    line.strip()
    for block in re.findall(r"^```bash\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
    if line.strip().startswith("proxmo ")
]


def test_the_table_of_recipes_names_the_presets():
    named = re.findall(r"^\| `([\w.-]+)` \|", PAGE, re.MULTILINE)
    assert named == [name for name in preset_names() if "qwen2.5" in name]


@pytest.mark.parametrize("line", LINES)
def test_a_command_of_the_page_has_its_options(line: str):
    words = shlex.split(line)[1:]
    command: click.Command = group
    while isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words.pop(0))
        assert found is not None
        command = found
    known = {name for option in command.params for name in option.opts}
    assert {word for word in words if word.startswith("--")} <= known
