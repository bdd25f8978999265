"""An evaluation on disk: what it keeps, how it goes on, and what it refuses."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from proxmo.agents.base import Decision, Situation
from proxmo.agents.scripted import RandomAgent
from proxmo.config import EnvConfig
from proxmo.errors import DataError, UsageError
from proxmo.evaluation import Evaluation, Player, evaluate, make_panel
from proxmo.evaluation.results import read_evaluation
from proxmo.policies.usage import Prices
from proxmo.types import Outcome
from tests.fakes import COUNTER, CounterEnv, ScriptedAgent

FILES = ("results.jsonl", "transcripts.jsonl.gz", "evaluation.json", "settings.json", "panel.toml")
PANEL = make_panel(EnvConfig(id=COUNTER, kwargs={"tasks": 10, "free": False}), ["train"])


def chance(**settings: Any) -> Player:
    return Player(RandomAgent(), "-", "random", settings)


def files(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in FILES}


class StopsAfter:
    """Chance, until it has decided so often; then the process is killed."""

    def __init__(self, decisions: int) -> None:
        self.decisions = decisions
        self.agent = RandomAgent()
        self.played: set[str] = set()

    def act(self, situations: list[Situation], *, seed: Any) -> list[Decision]:
        self.decisions -= len(situations)
        if self.decisions < 0:
            raise KeyboardInterrupt
        self.played |= {str(s.info["task_id"]) for s in situations}
        return self.agent.act(situations, seed=seed)


def interrupted(out: Path, decisions: int, **options: Any) -> StopsAfter:
    agent = StopsAfter(decisions)
    with pytest.raises(KeyboardInterrupt):
        evaluate(Player(agent, "-", "random"), PANEL, out=out, **options)
    return agent


@pytest.mark.parametrize("workers", [1, 3, 8])
def test_an_evaluation_that_was_interrupted_leaves_the_files_of_one_in_one_go(
    tmp_path: Path, workers: int
):
    options: dict[str, Any] = {"seeds": (0, 4), "trials": 2}
    in_one = evaluate(chance(), PANEL, out=tmp_path / "one", workers=8, **options)
    for decisions in (1, 30, 30):
        interrupted(tmp_path / "two", decisions, workers=workers, **options)
    begun = len(read_evaluation(tmp_path / "two").results)
    assert 0 < begun < 40
    again = evaluate(chance(), PANEL, out=tmp_path / "two", workers=workers, **options)
    assert again == in_one == evaluate(chance(), PANEL, workers=2, **options)
    assert files(tmp_path / "two") == files(tmp_path / "one")
    assert 0 < in_one.wins < in_one.episodes == in_one.planned == 40


def test_what_is_there_is_not_played_again(tmp_path: Path):
    interrupted(tmp_path / "e", 16, workers=3)
    kept = {result.task_id for result in read_evaluation(tmp_path / "e").results}
    assert 2 <= len(kept) < 10
    rest = StopsAfter(1000)
    evaluate(Player(rest, "-", "random"), PANEL, out=tmp_path / "e")
    assert rest.played == set(PANEL.tasks) - kept
    idle = StopsAfter(0)
    evaluate(Player(idle, "-", "random"), PANEL, out=tmp_path / "e")
    assert idle.played == set()


def test_results_are_in_the_order_of_seeds_tasks_and_trials(tmp_path: Path):
    evaluate(chance(), PANEL, out=tmp_path / "e", seeds=(3, 1), trials=2, workers=4)
    keys = [result.key for result in read_evaluation(tmp_path / "e").results]
    assert keys == [(s, task, t) for s in (3, 1) for task in PANEL.tasks for t in range(2)]


def test_a_result_counts_what_the_transcript_shows(tmp_path: Path):
    evaluate(chance(), PANEL, out=tmp_path / "e")
    with gzip.open(tmp_path / "e" / "transcripts.jsonl.gz", "rt") as file:
        transcripts = [json.loads(line) for line in file]
    for result, played in zip(read_evaluation(tmp_path / "e").results, transcripts, strict=True):
        assert (result.task_id, result.outcome) == (played["task_id"], Outcome(played["outcome"]))
        assert result.steps == len(played["steps"])
        assert result.won == (played["steps"][-1]["reward"] == 1.0)
        assert played["task"].startswith("to ")
        assert {"up", "down", "stay"} >= {step["action"] for step in played["steps"]}


def test_the_numbers_are_those_of_the_results(tmp_path: Path):
    evaluation = evaluate(chance(), PANEL, out=tmp_path / "e")
    written = json.loads((tmp_path / "e" / "evaluation.json").read_text())
    assert Evaluation.from_json(written) == evaluation
    results = read_evaluation(tmp_path / "e").results
    assert evaluation.wins == sum(result.won for result in results)
    assert evaluation.mean_length == sum(result.steps for result in results) / 10


def test_tokens_and_their_price_are_counted_per_episode(tmp_path: Path):
    asked = Decision("stay", prompt_ids=(1, 2, 3), response_ids=(4,))
    agent = ScriptedAgent(lambda situation: asked)
    player = Player(agent, "m", "direct", prices=Prices(2.0, 10.0))
    evaluation = evaluate(player, PANEL, out=tmp_path / "e")
    first = read_evaluation(tmp_path / "e").results[0]
    # Five steps of three tokens read and one written.
    assert (first.prompt_tokens, first.response_tokens) == (15, 5)
    assert first.cost == pytest.approx((15 * 2 + 5 * 10) / 1e6)
    assert (evaluation.prompt_tokens, evaluation.response_tokens) == (150, 50)
    assert evaluation.cost == pytest.approx(10 * first.cost)


class Flaky(CounterEnv):
    """Fails for some tasks as long as it is told to."""

    fails = True

    def step(self, action: str) -> Any:
        if Flaky.fails and self.task_id in ("train-3", "train-7"):
            raise ConnectionError("the world fell apart")
        return super().step(action)


@pytest.fixture
def flaky(monkeypatch: pytest.MonkeyPatch) -> None:
    from proxmo.rollout import environments

    monkeypatch.setattr(Flaky, "fails", True)
    monkeypatch.setattr(environments, "make_env", lambda config, **_: Flaky(tasks=10, free=False))


def test_episodes_in_error_are_no_losses_and_are_played_again(tmp_path: Path, flaky: None):
    first = evaluate(chance(), PANEL, out=tmp_path / "e")
    assert (first.episodes, first.errors, first.complete) == (8, 2, False)
    assert first.error_causes == {"ConnectionError: the world fell apart": 2}
    failed = [r for r in read_evaluation(tmp_path / "e").results if not r.scored]
    assert [r.task_id for r in failed] == ["train-3", "train-7"]
    assert {r.error for r in failed} == {"ConnectionError: the world fell apart"}
    Flaky.fails = False
    second = evaluate(chance(), PANEL, out=tmp_path / "e")
    assert (second.episodes, second.errors, second.complete) == (10, 0, True)
    evaluate(chance(), PANEL, out=tmp_path / "whole")
    assert files(tmp_path / "e") == files(tmp_path / "whole")


@pytest.mark.parametrize(
    "cut", ["results.jsonl", "transcripts.jsonl.gz"], ids=["results", "transcripts"]
)
def test_a_line_that_was_being_written_is_played_again(tmp_path: Path, cut: str):
    evaluate(chance(), PANEL, out=tmp_path / "one")
    interrupted(tmp_path / "two", 16, workers=3)
    file = tmp_path / "two" / cut
    whole = file.read_bytes()
    lines = read_evaluation(tmp_path / "two").results
    if cut == "results.jsonl":
        file.write_bytes(whole[:-20])
        assert len(read_evaluation(tmp_path / "two").results) == len(lines) - 1
    else:
        # One that was begun, of an episode whose result was not written yet.
        row = {"seed": 0, "task_id": "train-9", "trial": 0, "steps": list(range(50))}
        file.write_bytes(whole + gzip.compress(json.dumps(row).encode())[:-40])
    evaluate(chance(), PANEL, out=tmp_path / "two")
    assert files(tmp_path / "two") == files(tmp_path / "one")


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b[:99] + b"?" + b[100:]])
def test_what_lost_its_transcript_is_played_again(tmp_path: Path, damage: Any):
    evaluate(chance(), PANEL, out=tmp_path / "one")
    interrupted(tmp_path / "two", 25, workers=1)
    file = tmp_path / "two" / "transcripts.jsonl.gz"
    file.write_bytes(damage(file.read_bytes()))
    evaluate(chance(), PANEL, out=tmp_path / "two")
    assert files(tmp_path / "two") == files(tmp_path / "one")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seeds": (1,)}, r"seeds was \[0\] and is \[1\]"),
        ({"trials": 2}, "trials was 1 and is 2"),
        ({"player": chance(temperature=0.5)}, "player was .*'random'.* and is .*0.5"),
        ({"panel": make_panel(PANEL.env, ["train"], episodes=9)}, "panel was .*10.* and is .*9"),
    ],
    ids=["seeds", "trials", "player", "panel"],
)
def test_another_evaluation_is_refused_and_changes_nothing(
    tmp_path: Path, change: dict[str, Any], said: str
):
    evaluate(chance(), PANEL, out=tmp_path / "e")
    before = files(tmp_path / "e")
    options: dict[str, Any] = {"player": chance(), "panel": PANEL, **change}
    with pytest.raises(UsageError, match=said) as refused:
        evaluate(out=tmp_path / "e", **options)
    assert files(tmp_path / "e") == before
    # As in a notebook, which keeps the last traceback, the directory is free again.
    evaluate(chance(), PANEL, out=tmp_path / "e")
    assert refused.tb


def test_a_directory_of_something_else_is_refused(tmp_path: Path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty and holds no evaluation"):
        evaluate(chance(), PANEL, out=tmp_path)
    with pytest.raises(UsageError, match="not empty and holds no evaluation"):
        evaluate(chance(), PANEL, out=tmp_path / "mine.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_directory_whose_panel_was_being_written_is_taken(tmp_path: Path):
    (tmp_path / "panel.toml.new").write_text('name = "P')
    assert evaluate(chance(), PANEL, out=tmp_path).complete


def test_a_directory_has_one_writer_at_a_time(tmp_path: Path):
    evaluate(chance(), PANEL, out=tmp_path / "e")
    with FileLock(tmp_path / "e" / ".lock"), pytest.raises(UsageError, match="is in use"):
        evaluate(chance(), PANEL, out=tmp_path / "e")


def test_what_cannot_be_written_is_a_data_error(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot write the directory"):
        evaluate(chance(), PANEL, out=tmp_path / "file" / "e")


WHO = '{"panel": {}, "player": {}}'


@pytest.mark.parametrize(
    ("settings", "result", "said"),
    [
        *((WHO, text, "is not the directory of an evaluation") for text in ["", "{", "[]", "{}"]),
        (None, "", "is not the directory of an evaluation"),
        *((text, None, "does not say who played") for text in ["{}", "[]", '{"player": {}}']),
    ],
)
def test_what_is_no_evaluation_is_a_data_error(
    tmp_path: Path, settings: str | None, result: str | None, said: str
):
    if settings is not None:
        (tmp_path / "settings.json").write_text(settings)
        (tmp_path / "results.jsonl").write_text("" if result is None else f"{result}\n")
    with pytest.raises(DataError, match=said):
        read_evaluation(tmp_path)


@pytest.mark.parametrize("seeds", [(), (0, 0), (-1,)])
def test_seeds_are_different_and_not_negative(seeds: tuple[int, ...]):
    with pytest.raises(UsageError, match="expected different numbers from 0 on"):
        evaluate(chance(), PANEL, seeds=seeds)


def test_responses_of_any_text_are_kept(tmp_path: Path):
    odd = "half a pair \ud83d, a whole one \U0001f600, \u6f22, \x00 and\nlines"
    agent = ScriptedAgent(lambda situation: Decision("stay", response=odd))
    evaluate(Player(agent, "-", "odd"), PANEL, out=tmp_path / "e")
    with gzip.open(tmp_path / "e" / "transcripts.jsonl.gz", "rt") as file:
        assert json.loads(next(file))["steps"][0]["response"] == odd
