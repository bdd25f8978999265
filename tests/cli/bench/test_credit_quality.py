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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--methods", "gigpoo"), "did you mean gigpo"),
        (("--methods", "proxmo[omega]"), "is not of the form"),
        (("--methods", "proxmo[gamma=0.9]"), "gamma is not the method's"),
        (("--methods", ","), "no method to compare"),
        (("--against", "nope"), "'nope' need it among the methods"),
        (("--plot", "no/where/x.svg"), "expected a file in a directory"),
        (("--plot", "x.foo"), "expected a file in a directory"),
        (("--checkpoint", "no/model"), "no/model"),
        (("--set", "difficulty=nope"), "nope"),
    ],
)
def test_a_mistake_is_found_before_anything_is_measured(
    tmp_path: Path, arguments: tuple[str, ...], message: str
):
    if arguments[0] == "--plot":
        pytest.importorskip("matplotlib", reason="the picture needs matplotlib")
    out = tmp_path / "out"
    result = CliRunner().invoke(command, [*SMALL, "--out", str(out), *arguments])
    assert result.exception is not None and message in str(result.exception)
    assert not (out / "settings.json").exists()
