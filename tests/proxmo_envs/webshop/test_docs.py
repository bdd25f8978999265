"""What docs/webshop.md shows works."""

from __future__ import annotations

import re
from pathlib import Path

from proxmo_envs.webshop.env import WebShopEnv


def test_the_examples_of_the_page_run(repository: Path) -> None:
    page = (repository / "docs" / "webshop.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        exec(compile(example, "docs/webshop.md", "exec"), {})


def test_every_argument_of_the_environment_is_documented() -> None:
    names = WebShopEnv.__init__.__annotations__.keys() - {"return"}
    page = str(WebShopEnv.__doc__)
    assert [name for name in names if f"`{name}" not in page and f"{name}=" not in page] == []
