"""docs/training.md names the presets that are there; tests/test_readme.py checks its commands."""

from __future__ import annotations

import re
from pathlib import Path

from proxmo.config_files import preset_names


def test_the_table_of_recipes_names_the_presets(repository: Path):
    page = (repository / "docs" / "training.md").read_text()
    named = re.findall(r"^\| `([\w.-]+)` \|", page, re.MULTILINE)
    assert named == [name for name in preset_names() if "qwen2.5" in name]
