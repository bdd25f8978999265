"""docs/metrics.md lists every metric of the code, and nothing that the code does not know."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "metrics.md"
NAME = re.compile(r"[a-z]+/[a-z0-9_<>]+")
# Strings of that form that are no metrics: each with its reason.
NOT_METRICS = {
    "tokens/s": "a unit in the display",
    "application/json": "a media type",
}
PLACEHOLDER = "<>"


def listed_names() -> set[str]:
    return set(re.findall(r"^\| `([^`]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))


def names_in(source: str) -> Iterator[str]:
    """Strings that look like a metric; what an f-string fills in becomes `<>`."""
    inside_f_strings = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            inside_f_strings |= {id(part) for part in node.values}
            parts = (p.value if isinstance(p, ast.Constant) else PLACEHOLDER for p in node.values)
            text = "".join(str(part) for part in parts)
        elif isinstance(node, ast.Constant) and id(node) not in inside_f_strings:
            text = str(node.value)
        else:
            continue
        if NAME.fullmatch(text):
            yield text


def is_listed(name: str, listed: set[str]) -> bool:
    """A listed `<task_type>` stands for any word, and so does `<>` in the code."""
    pattern = re.escape(name).replace(re.escape(PLACEHOLDER), r"[a-z0-9_<>]+")
    return any(
        re.fullmatch(pattern, one) or re.fullmatch(re.sub(r"<[a-z_]+>", "[a-z0-9_<>]+", one), name)
        for one in listed
    )


@pytest.mark.parametrize(
    "path", sorted((ROOT / "proxmo").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT))
)
def test_every_metric_in_the_code_is_listed(path: Path):
    names = set(names_in(path.read_text(encoding="utf-8"))) - NOT_METRICS.keys()
    listed = listed_names()
    assert sorted(name for name in names if not is_listed(name, listed)) == []


def test_every_listed_metric_is_in_the_code():
    code = {name for path in (ROOT / "proxmo").rglob("*.py") for name in names_in(path.read_text())}
    missing = [one for one in listed_names() if not any(is_listed(name, {one}) for name in code)]
    assert missing == []


def test_an_unlisted_metric_would_be_found():
    source = 'metrics["area/new_s"] = 1\nmetrics[f"loss/{kind}_x"] = 2\n"plain/words here"'
    assert sorted(names_in(source)) == ["area/new_s", "loss/<>_x"]
    assert not is_listed("area/new_s", {"area/old_s"})
    assert not is_listed("loss/<>_x", {"loss/kl"})
    assert is_listed("loss/<>", {"loss/kl"})
    assert is_listed("train/rate_<>", {"train/rate_<task_type>"})
    assert is_listed("train/rate_heat", {"train/rate_<task_type>"})
