"""docs/configuration.md is what its script writes, and explains every key."""

from __future__ import annotations

import runpy
from pathlib import Path

from proxmo.config_loading import fields


def test_the_page_of_the_configuration_is_up_to_date(repository: Path):
    script = runpy.run_path(str(repository / "docs" / "configuration.py"))
    page = (repository / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert page == script["page"](), "run: python docs/configuration.py"
    assert [key for key in fields() if f"| `{key}` |" not in page] == []
