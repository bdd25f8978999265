"""`proxmo eval` hands its flags to the library and prints what comes back."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proxmo.errors import DataError, UsageError
from tests.cli.conftest import evaluation


class Library:
    """Stands for proxmo.evaluation: remembers the calls, returns what a test wants."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any, dict[str, Any]]] = []
        self.result = evaluation(0.4)

    def evaluate_checkpoint(self, checkpoint: Path, **arguments: Any) -> SimpleNamespace:
        self.calls.append(("checkpoint", checkpoint, arguments))
        arguments["listener"].phase("evaluating", done=1, total=10)
        return self.result

    def open_panel(self, name: str, data: str | None) -> str:
        self.calls.append(("panel", name, {"data": data, "listener": None}))
        return f"panel {name}"

    def evaluate_policy(self, policy: str, **arguments: Any) -> SimpleNamespace:
        self.calls.append(("policy", policy, arguments))
        return self.result


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    library = Library()
    monkeypatch.setitem(sys.modules, "proxmo.evaluation", library)
    return library


def without_listener(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name != "listener"}


def test_a_checkpoint_alone_is_enough(proxmo, library):
    done = proxmo("eval", "--checkpoint", "run")
    assert done.code == 0
    ((kind, checkpoint, arguments),) = library.calls
    assert (kind, checkpoint) == ("checkpoint", Path("run"))
    assert without_listener(arguments) == {
        "env": None,
        "split": None,
        "data": None,
        "episodes": None,
        "seeds": (0,),
        "trials": 1,
        "workers": 64,
        "out": None,
    }


def test_the_flags_reach_the_library(proxmo, library):
    proxmo(
        *("eval", "--checkpoint", "run", "--env", "E-v0", "--split", "train", "--data", "d"),
        *("--episodes", "5", "--temperature", "0", "--seeds", "3,1", "--workers", "8"),
        *("--trials", "4", "--out", "results"),
    )
    assert without_listener(library.calls[0][2]) == {
        "env": "E-v0",
        "split": "train",
        "data": "d",
        "episodes": 5,
        "temperature": 0.0,
        "seeds": (3, 1),
        "trials": 4,
        "workers": 8,
        "out": Path("results"),
    }


def test_the_expert_plays_instead_of_a_checkpoint(proxmo, library):
    assert proxmo("eval", "--policy", "expert", "--episodes", "5").code == 0
    ((kind, policy, arguments),) = library.calls
    assert (kind, policy, arguments["env"]) == ("policy", "expert", "ALFWorld-v0")
    assert (arguments["split"], arguments["episodes"]) == ("valid_unseen", 5)


def test_the_table_shows_every_task_type_the_total_and_what_was_played(proxmo, library):
    done = proxmo("eval", "--checkpoint", "run")
    rows = [line.split() for line in done.out.splitlines()]
    assert ["heat", "4", "1", "25.0", "%", "[12.5,", "62.5]"] in rows
    assert ["cool", "4", "3", "75.0", "%", "[37.5,", "87.5]"] in rows
    assert ["all", "10", "4", "40.0", "%", "[20.0,", "70.0]"] in rows
    assert ["panel", "alfworld-valid-unseen,", "10", "tasks,", "sha256", "0123abcd"] in rows
    assert ["environment", "ALFWorld-v0,", "split", "valid_unseen"] in rows
    assert ["pass@k", "1:", "50.0", "%,", "3:", "87.5", "%"] in rows
    assert ["success", "after", "k", "tries", "1:", "25.0", "%,", "2:", "50.0", "%"] in rows
    assert "2 seeds mean 50.0 % [0.0, 100.0], standard deviation 35.4," in " ".join(
        next(row for row in rows if row[:2] == ["2", "seeds"])
    )
    assert ["tokens", "47", "k", "read,", "900", "written,", "cost", "1.2500"] in rows
    assert "evaluating" in done.err and "evaluating" not in done.out


def test_a_piped_table_has_no_lines_no_colour_and_no_trailing_blanks(proxmo, library):
    out = proxmo("eval", "--checkpoint", "run").out
    assert not set(out) & set("│─╭\x1b")
    assert all(line == line.rstrip() for line in out.splitlines())


def test_json_is_what_the_library_says(proxmo, library):
    done = proxmo("eval", "--checkpoint", "run", "--json")
    assert json.loads(done.out) == library.result.to_json()


def test_episodes_that_could_not_be_scored_make_the_result_incomplete(proxmo, library):
    library.result = evaluation(0.4, errors=2)
    done = proxmo("eval", "--checkpoint", "run")
    assert done.code == 3
    assert "2 episodes ended in an error: TimeoutError: no answer (2)" in done.out
    library.result = evaluation(0.0, errors=2, episodes=0)
    done = proxmo("eval", "--checkpoint", "run")
    assert done.code == 3
    assert ["all", "0", "0", "-", "-"] in [line.split() for line in done.out.splitlines()]


@pytest.mark.parametrize("arguments", [[], ["--checkpoint", "run", "--policy", "expert"]])
def test_exactly_one_player_is_evaluated(proxmo, library, arguments: list[str]):
    done = proxmo("eval", *arguments)
    assert (done.code, library.calls) == (2, [])
    assert done.error_line.startswith("error: give one of --checkpoint DIR, --model M, --api NAME")


def test_a_policy_has_no_temperature(proxmo, library):
    done = proxmo("eval", "--policy", "random", "--temperature", "1")
    assert (done.code, library.calls) == (2, [])
    assert "--temperature" in done.error_line


def test_a_panel_is_opened_and_replaces_the_choice_of_tasks(proxmo, library):
    proxmo("eval", "--policy", "random", "--panel", "alfworld-both", "--data", "d")
    (opened, name, read), (kind, policy, arguments) = library.calls
    assert (opened, name, read["data"]) == ("panel", "alfworld-both", "d")
    assert (kind, policy, arguments["panel"]) == ("policy", "random", "panel alfworld-both")
    assert not {"env", "split", "data", "episodes"} & arguments.keys()


@pytest.mark.parametrize("choice", [("--env", "E"), ("--split", "S"), ("--episodes", "3")])
def test_a_panel_leaves_no_choice_of_tasks(proxmo, library, choice: tuple[str, str]):
    done = proxmo("eval", "--policy", "random", "--panel", "alfworld-both", *choice)
    assert (done.code, library.calls) == (2, [])
    assert f"leave {choice[0]} out" in done.error_line


@pytest.mark.parametrize("seeds", ["", "a", "1,", "1.5", "0 1"])
def test_seeds_are_numbers_with_commas(proxmo, library, seeds: str):
    done = proxmo("eval", "--policy", "random", "--seeds", seeds)
    assert (done.code, library.calls) == (2, [])
    assert "not of the form 0 or 0,1,2" in done.error_line


@pytest.mark.parametrize("error", [DataError("damaged"), UsageError("another one")])
def test_a_directory_that_does_not_go_on_is_not_said_to(proxmo, library, monkeypatch, error):
    def refused(policy: str, **arguments: Any) -> None:
        arguments["out"].mkdir()
        (arguments["out"] / "results.jsonl").touch()
        raise error

    monkeypatch.setattr(library, "evaluate_policy", refused)
    assert "goes on" not in proxmo("eval", "--policy", "random", "--out", "here").err


def test_an_interrupted_evaluation_says_where_it_goes_on(proxmo, library, monkeypatch):
    def interrupted(policy: str, **arguments: Any) -> None:
        arguments["out"].mkdir()
        (arguments["out"] / "results.jsonl").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(library, "evaluate_policy", interrupted)
    done = proxmo("eval", "--policy", "random", "--out", "here")
    assert done.code == 3
    assert "what was played is kept in here; the same command goes on" in done.err


def test_the_shop_is_measured_on_its_test_goals_by_default(proxmo):
    done = proxmo("eval", "--policy", "expert", "--env", "WebShop-v0", "--episodes", "2", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["split"] == "test"


def test_the_help_says_what_is_played_where_no_checkpoint_does(proxmo):
    said = " ".join(proxmo("eval", "-h").out.split())
    assert "else ALFWorld-v0]" in said
    assert "else the environment's for evaluation]" in said
    assert "[a checkpoint: as in training, else all of the split]" in said
