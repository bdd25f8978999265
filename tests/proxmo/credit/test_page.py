"""docs/credit.md: its code runs, and it names every method and option there is."""

import inspect
import re
from pathlib import Path

import pytest

from proxmo import credit
from proxmo.credit import registry

PAGE = (Path(__file__).parents[3] / "docs" / "credit.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_the_code_of_the_page_runs(block, monkeypatch):
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))
    exec(compile(block, "docs/credit.md", "exec"), {})


def test_there_is_code_to_run():
    assert len(BLOCKS) == 2


def test_the_page_names_every_method_and_option():
    (table,) = re.findall(r"^## Formulas.*?^\| method.*?\n\n", PAGE, re.MULTILINE | re.DOTALL)
    for name in credit.method_names():
        assert f"`{name}`" in table, name
        for option, default in credit.method_options(name).items():
            assert f"`{option}`" in table, (name, option)
            if default is not inspect.Parameter.empty and isinstance(default, (float, str)):
                shown = f'("{default}"' if isinstance(default, str) else f"({default:g}"
                assert f"`{option}` {shown}" in table, (name, option, default)
