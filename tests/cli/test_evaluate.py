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


def asked(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name != "listener"}


def test_the_flags_reach_the_library_and_a_checkpoint_alone_is_enough(proxmo, library):
    plain = {"env": None, "split": None, "data": None, "episodes": None, "out": None}
    plain |= {"seeds": (0,), "trials": 1, "workers": 64}
    assert proxmo("eval", "--checkpoint", "run").code == 0
    proxmo(
        *("eval", "--checkpoint", "run", "--env", "E-v0", "--split", "train", "--data", "d"),
        *("--episodes", "5", "--temperature", "0", "--seeds", "3,1", "--workers", "8"),
        *("--trials", "4", "--out", "results"),
    )
    (kind, checkpoint, least), (_, _, most) = library.calls
    assert (kind, checkpoint, asked(least)) == ("checkpoint", Path("run"), plain)
    given = {"env": "E-v0", "split": "train", "data": "d", "episodes": 5, "seeds": (3, 1)}
    given |= {"temperature": 0.0, "trials": 4, "workers": 8, "out": Path("results")}
    assert asked(most) == given


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
    # A pipe gets neither lines nor colour nor trailing blanks.
    assert not set(done.out) & set("│─╭\x1b")
    assert all(line == line.rstrip() for line in done.out.splitlines())


def test_episodes_that_could_not_be_scored_make_the_result_incomplete(proxmo, library):
    library.result = evaluation(0.4, errors=2)
    done = proxmo("eval", "--checkpoint", "run")
    assert done.code == 3
    assert "2 episodes ended in an error: TimeoutError: no answer (2)" in done.out
    library.result = evaluation(0.0, errors=2, episodes=0)
    done = proxmo("eval", "--checkpoint", "run")
    assert done.code == 3
    assert ["all", "0", "0", "-", "-"] in [line.split() for line in done.out.splitlines()]


def test_a_panel_is_opened_and_replaces_the_choice_of_tasks(proxmo, library):
    proxmo("eval", "--policy", "random", "--panel", "alfworld-both", "--data", "d")
    (opened, name, read), (kind, policy, arguments) = library.calls
    assert (opened, name, read["data"]) == ("panel", "alfworld-both", "d")
    assert (kind, policy, arguments["panel"]) == ("policy", "random", "panel alfworld-both")
    assert not {"env", "split", "data", "episodes"} & arguments.keys()


@pytest.mark.parametrize(
    ("error", "continues"),
    [(KeyboardInterrupt(), True), (DataError("damaged"), False), (UsageError("other"), False)],
)
def test_an_evaluation_that_can_go_on_says_where(
    proxmo, library, monkeypatch, error: BaseException, continues: bool
):
    def refused(policy: str, **arguments: Any) -> None:
        arguments["out"].mkdir()
        (arguments["out"] / "results.jsonl").touch()
        raise error

    monkeypatch.setattr(library, "evaluate_policy", refused)
    done = proxmo("eval", "--policy", "random", "--out", "here")
    hint = "what was played is kept in here; the same command goes on"
    assert (hint in done.err) is continues
    assert done.code == 3 or not continues


def test_the_shop_is_measured_on_its_test_goals_by_default(proxmo):
    done = proxmo("eval", "--policy", "expert", "--env", "WebShop-v0", "--episodes", "2", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["split"] == "test"


def test_the_help_says_what_is_played_where_no_checkpoint_does(proxmo):
    said = " ".join(proxmo("eval", "-h").out.split())
    assert "else ALFWorld-v0]" in said
    assert "else the environment's for evaluation]" in said
    assert "[a checkpoint: as in training, else all of the split]" in said
