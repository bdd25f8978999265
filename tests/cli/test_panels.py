"""`proxmo panels`, `compare` and `table`, and an evaluation that is killed, by the real library."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from tests.cli.conftest import finish, start

TINY = ("--set", "env.kwargs.difficulty=tiny")


@pytest.fixture(autouse=True)
def no_official_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)


def test_the_list_says_what_each_panel_holds_or_needs(proxmo, official_games: Path):
    rows = {row["name"]: row for row in json.loads(proxmo("panels", "--json").out)}
    assert (rows["alfworld-both"]["tasks"], rows["alfworld-both"]["hash"]) == (274, "")
    assert rows["alfworld-both"]["note"] == "needs the official ALFWorld data"
    assert len(rows["alfworld-generated-400"]["hash"]) == 64
    lines = [line.split() for line in proxmo("panels", "--data", official_games).out.splitlines()]
    assert ["alfworld-valid-unseen", "ALFWorld-v0", "valid_unseen", "134"] in [
        line[:4] for line in lines
    ]


def test_a_new_panel_is_written_printed_and_played(proxmo):
    choice = ("--split", "valid_seen", "--episodes", "4", "--seed", "2")
    made = proxmo("panels", "--new", "mine.toml", *choice, *TINY)
    digest = made.out.split()[-1]
    assert made.out.startswith("mine.toml: panel mine, 4 tasks, sha256 ")
    assert proxmo("panels", "mine.toml").out == Path("mine.toml").read_text()
    shown = json.loads(proxmo("panels", "mine.toml", "--json").out)
    assert (shown["hash"], len(shown["tasks"])) == (digest, 4)
    played = json.loads(proxmo("eval", "--policy", "expert", "--panel", "mine.toml", "--json").out)
    assert (played["panel"], played["panel_hash"], played["wins"]) == ("mine", digest, 4)


def test_a_panel_is_never_overwritten(proxmo):
    assert proxmo("panels", "--new", "mine.toml", "--episodes", "4", *TINY).code == 0
    before = Path("mine.toml").read_text()
    done = proxmo("panels", "--new", "mine.toml", "--episodes", "5", *TINY)
    assert (done.code, Path("mine.toml").read_text()) == (2, before)
    assert "a panel is not changed" in done.error_line


def evaluated(proxmo, policy: str, panel: str, out: str) -> None:
    assert proxmo("eval", "--policy", policy, "--panel", panel, "--out", out).code == 0


def test_two_evaluations_are_compared(proxmo):
    evaluated(proxmo, "random", "alfworld-generated-tiny-8", "a")
    evaluated(proxmo, "expert", "alfworld-generated-tiny-8", "b")
    shown = proxmo("compare", "a", "b").out
    rows = [line.split() for line in shown.splitlines()]
    assert ["all", "8", "0.0", "%", "100.0", "%", "+100.0", "[100.0,", "100.0]"] in rows
    # 2 / 2^8
    assert ["McNemar", "p", "=", "0.00781,", "exact"] in rows
    told = json.loads(proxmo("compare", "a", "b", "--json").out)
    assert (told["only_second"], told["success"]["difference"]) == (8, 1.0)
    assert told["panel_hash"] in shown


def test_evaluations_on_different_panels_are_not_compared(proxmo):
    evaluated(proxmo, "expert", "alfworld-generated-tiny-2", "a")
    evaluated(proxmo, "expert", "alfworld-generated-tiny-3", "b")
    done = proxmo("compare", "a", "b")
    assert (done.code, done.out) == (2, "")
    assert "rates on different tasks cannot be compared" in done.error_line


def test_a_table_has_the_evaluations_and_on_request_the_published_figures(proxmo):
    evaluated(proxmo, "expert", "alfworld-generated-tiny-8", "a")
    text = proxmo("table", "a", "--published").out
    rows = [line.split() for line in text.splitlines()]
    assert rows[0][:3] == ["model", "method", "Pick"]
    assert rows[1][:2] == ["-", "expert"]
    assert "Qwen2.5-1.5B-Instruct  proxmo" in text
    assert rows[-1][:3] == ["ALFWorld-v0:", "panel", "alfworld-generated-tiny-8,"]
    assert proxmo("table", "a", "--format", "markdown").out.startswith("| model | method |")
    assert r"\begin{tabular}" in proxmo("table", "a", "--format", "latex").out
    assert json.loads(proxmo("table", "a", "--json").out)[0]["method"] == "expert"


def test_an_evaluation_that_is_killed_goes_on_where_it_stopped(tmp_path: Path):
    """The process gets SIGKILL when some episodes are on disk; the same command does the rest."""
    command = ("eval", "--policy", "random", "--workers", "1", "--panel", "alfworld-generated-30")
    command += ("--seeds", "0,1", "--trials", "2", "--out")
    process = start(*command, tmp_path / "two", stdout=None, stderr=None)
    results = tmp_path / "two" / "results.jsonl"
    deadline = time.monotonic() + 120
    while not results.exists() or results.read_bytes().count(b"\n") < 30:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = results.read_bytes().count(b"\n")
    assert 30 <= kept < 120
    for out in ("two", "one"):
        assert finish(start(*command, tmp_path / out)).code == 0
    for name in ("results.jsonl", "transcripts.jsonl.gz", "evaluation.json"):
        assert (tmp_path / "two" / name).read_bytes() == (tmp_path / "one" / name).read_bytes()
