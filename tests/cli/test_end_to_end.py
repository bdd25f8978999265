"""The real command line in a process of its own: train, watch, interrupt, resume, evaluate."""

from __future__ import annotations

import json
import os
import pty
import signal
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from proxmo.config import Config
from proxmo.config_loading import resolve
from proxmo.training.metrics_file import read_rows
from tests.cli.conftest import Outcome, finish, start
from tests.proxmo.reporting.test_metrics_page import is_listed, listed_names

pytestmark = pytest.mark.slow

TINY = resolve(["tiny"])
# As little of everything as still passes through every part of a run.
SETTINGS = [
    "rollout.tasks=2",
    "rollout.group_size=2",
    "env.max_steps=3",
    "sampling.max_new_tokens=4",
    "eval.episodes=2",
    "checkpoint.every=1",
]


def untrained(target: Path, world: Config) -> Path:
    """A model of the embedded kind that has learnt nothing."""
    from proxmo.training.sft import SftConfig
    from proxmo.training.tiny import TinyConfig, build_tiny

    nothing = SftConfig(steps=1, batch_size=2)
    size = TinyConfig(layers=1, hidden=32, heads=2, kv_heads=1, intermediate=32, games=6)
    size = replace(size, imitation=nothing)
    build_tiny(target, world.env, world.prompt, size, lambda *args, **kwargs: None)
    return target


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return untrained(tmp_path_factory.mktemp("models") / "untrained", TINY)


def train(model: Path, out: Path, iterations: int, preset: str = "tiny") -> tuple[object, ...]:
    settings = [part for one in SETTINGS for part in ("--set", one)]
    choice = ("train", "--preset", preset, "--model", model, "--out", out)
    return *choice, "--iterations", iterations, *settings


def on_a_terminal(*arguments: object) -> tuple[Outcome, str]:
    """Run with stderr on a pseudo terminal; returns what was shown there as well."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "50"}
    process = start(*arguments, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # how Linux reports that the other side is closed
        while part := os.read(ours, 65536):
            shown += part
    os.close(ours)
    return finish(process), shown.decode()


def test_a_run_shows_a_panel_writes_listed_metrics_and_can_be_evaluated(
    model: Path, tmp_path: Path
):
    out = tmp_path / "run"
    done, shown = on_a_terminal(*train(model, out, 2), "--json")
    assert done.code == 0, shown
    assert "╭" in shown and "iteration 2/2" in shown and "success rate" in shown
    result = json.loads(done.out)
    assert (result["iterations_done"], result["finished"]) == (2, True)
    names = {name for row in read_rows(out / "metrics.jsonl") for name in row} - {"iteration"}
    listed = listed_names()
    assert sorted(name for name in names if not is_listed(name, listed)) == []

    evaluated = finish(start("eval", "--checkpoint", out, "--json"))
    assert evaluated.code == 0, evaluated.err
    measured = json.loads(evaluated.out)
    # Nothing but the checkpoint was given, so this is the evaluation the run ended with.
    assert measured == result["after"]


def test_an_interrupted_run_goes_on_with_the_command_it_prints(model: Path, tmp_path: Path):
    out = tmp_path / "run"
    process = start(*train(model, out, 60))
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        if line.startswith("iteration 2/"):
            process.send_signal(signal.SIGINT)
            break
    done = finish(process)
    assert done.code == 3, "".join(seen) + done.err
    (resume,) = (line for line in done.out.splitlines() if line.startswith("resume with: "))
    assert resume == f"resume with: proxmo train --resume {out}"
    reached = len(read_rows(out / "metrics.jsonl"))
    assert 2 <= reached < 60

    more = reached + 1
    resumed = finish(start("train", "--resume", out, "--iterations", more, "--json"))
    assert resumed.code == 0, resumed.err
    assert json.loads(resumed.out)["iterations_done"] == more
    rows = read_rows(out / "metrics.jsonl")
    assert [row["iteration"] for row in rows] == list(range(1, more + 1))


def test_the_web_shop_is_trained_and_evaluated_with_success_and_score(tmp_path: Path):
    model = untrained(tmp_path / "model", resolve(["tiny-webshop"]))
    trained = finish(start(*train(model, tmp_path / "run", 1, "tiny-webshop"), "--json"))
    assert trained.code == 0, trained.err
    result = json.loads(trained.out)
    assert "train/score_mean" in result["metrics"]
    assert (result["after"]["split"], result["after"]["episodes"]) == ("validation", 2)

    expert = ("eval", "--policy", "expert", "--env", "WebShop-v0", "--split", "test")
    shown = finish(start(*expert, "--episodes", "8"))
    assert shown.code == 0, shown.err
    assert "success" in shown.out and "mean score" in shown.out
