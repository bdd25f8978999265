"""docs/evaluation.md: its panels are those of the package, its lines what expert and chance do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proxmo.config import EnvConfig
from proxmo.evaluation import Panel, evaluate_policy, make_panel, open_panel
from proxmo.evaluation.panels import named_panels

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "evaluation.md").read_text()
SHOPS = [
    ("bundled", "clean"),
    ("original, 1,000 products", "original"),
    ("original, 1,000 products", "clean"),
    ("invented, 300 products", "original"),
]
RAW = {"original, 1,000 products": "real1000", "invented, 300 products": "fict300"}


def shop_panel(catalogue: str, rules: str, shared: Path) -> Panel:
    if catalogue == "bundled":
        return open_panel("webshop-bundled-400")
    data = str(shared / "webshop" / "data" / RAW[catalogue])
    env = EnvConfig("WebShop-v0", data=data, kwargs={"profile": rules})
    return make_panel(env, ["test"], episodes=500)


def test_the_official_panels_have_the_hashes_of_the_page():
    named = dict(re.findall(r"^\| `(alfworld-[\w-]+)` \|.*`(\w{12})` \|$", PAGE, re.MULTILINE))
    assert named == {
        name: known.hash[:12] for name, (_, known) in named_panels().items() if known.hash
    }


@pytest.mark.parametrize(("catalogue", "rules"), SHOPS)
def test_the_lines_of_the_shop_are_those_of_the_page(catalogue: str, rules: str, shared: Path):
    panel = shop_panel(catalogue, rules, shared)
    rows = []
    for policy in ("expert", "random"):
        one = evaluate_policy(policy, panel=panel)
        rate, low, high = (100 * share for share in (one.success_rate, one.low, one.high))
        rows.append(
            f"| {policy} | {100 * one.mean_score:.1f} | {rate:.1f} [{low:.1f}, {high:.1f}] |"
        )
    head = f"| {catalogue} | {rules} | `{panel.hash[:12]}` "
    assert f"{head}{rows[0]}\n| | | {rows[1]}" in PAGE
