"""`proxmo bench credit-quality`: its table, its JSON, its picture, and going on in a directory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from proxmo_cli.bench.credit_quality import command

SMALL = (
    *("--set", "difficulty=tiny", "--data", "generated", "--max-steps", "8", "--tasks", "3"),
    *("--group-size", "2", "--noise", "0.3", "--continuations", "2", "--workers", "1"),
)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(command, [*SMALL, *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_table_has_the_methods_between_the_trivial_baselines_and_the_oracle(tmp_path: Path):
    text = run("--methods", "grpo,proxmo[omega=10,tau=0.2]", "--out", str(tmp_path))
    names = [line.split("  ")[0] for line in text.splitlines()]
    wanted = [
        "trivial: reward alone",
        "grpo",
        "proxmo[omega=10,tau=0.2]",
        "oracle: return - true value",
    ]
    assert [name for name in names if name in wanted] == wanted
    assert "of 3 tasks; the policy wins" in text
    assert (tmp_path / "task-0002.json").exists()


def test_json_holds_what_the_table_says(tmp_path: Path):
    found = json.loads(run("--methods", "grpo,proxmo", "--json", "--out", str(tmp_path)))
    assert set(found["methods"]) == {"grpo", "proxmo"}
    score = found["methods"]["grpo"]
    assert score["low"] <= score["cosine"] <= score["high"]
    assert set(found) >= {"oracle", "trivial", "reliability", "settings"}
    assert found["settings"]["continuations"] == 2
    again = json.loads(run("--methods", "grpo,proxmo", "--json", "--out", str(tmp_path)))
    assert again == found


def test_the_scores_are_drawn(tmp_path: Path):
    pytest.importorskip("matplotlib", reason="the picture needs matplotlib")
    run("--methods", "grpo", "--plot", str(tmp_path / "scores.svg"))
    assert "</svg>" in (tmp_path / "scores.svg").read_text(encoding="utf-8")
