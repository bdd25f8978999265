"""Recorded episodes are played again, and show what their agent saw."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proxmo.agents.base import Decision, Situation
from proxmo.agents.prompts import PromptBuilder, View
from proxmo.config import EnvConfig, OptimConfig
from proxmo.errors import DataError
from proxmo.evaluation import evaluate, make_panel
from proxmo.evaluation.players import Player
from proxmo.training.recorded import read_recordings, recorded_settings, replay
from proxmo.types import Outcome
from tests.fakes import COUNTER, counter_config, save_tiny_model, tiny_tokenizer

pytest.importorskip("torch")
WORLD = EnvConfig(id=COUNTER, kwargs={"free": False})


class Remembering:
    """Goes up; first says something that is no action; remembers what it saw, by task."""

    def __init__(self) -> None:
        self.seen: dict[str, list[View]] = {}

    def act(self, situations: Sequence[Situation], *, seed: Sequence[int]) -> list[Decision]:
        decisions = []
        for situation in situations:
            seen = self.seen.setdefault(situation.info["task_id"], [])
            seen.append(situation.view)
            good = Decision("up", response="so: up")
            decisions.append(good if len(seen) > 1 else Decision(None, False, "no_action", "hm"))
        return decisions


@pytest.fixture
def evaluated(tmp_path: Path) -> tuple[Path, Remembering]:
    agent = Remembering()
    panel = make_panel(WORLD, ["valid_unseen"])
    evaluate(Player(agent, "-", "-"), panel, seeds=[7], out=tmp_path / "evaluation")
    return tmp_path / "evaluation", agent


def test_an_evaluation_shows_what_its_agent_saw_at_its_valid_steps(evaluated):
    path, agent = evaluated
    recordings = read_recordings(path)
    assert [one.outcome for one in recordings] == [Outcome.WON] * 5
    for recording, moments in zip(recordings, replay(recordings, WORLD), strict=True):
        assert [m.view for m in moments] == agent.seen[recording.task_id][1:]
        assert [(m.response, m.action) for m in moments] == [("so: up", "up")]


def test_an_evaluation_says_which_world_it_was(evaluated):
    assert recorded_settings(evaluated[0]) == {"env.id": COUNTER, "env.kwargs": {"free": False}}
    assert recorded_settings(evaluated[0] / "transcripts.jsonl.gz") == {}


def test_a_run_shows_prompts_of_the_recorded_lengths(tmp_path: Path):
    from proxmo.training.loop import Trainer

    config = counter_config(save_tiny_model(tmp_path / "model"))
    config = replace(config, optim=OptimConfig(iterations=2, lr=1e-2, kl_coef=0.0))
    Trainer(config, out=tmp_path / "run").run()
    recordings = read_recordings(tmp_path / "run")
    assert len(recordings) == 16
    replayed = replay(recordings, config.env)
    assert len(replayed) == 16
    files = sorted((tmp_path / "run" / "episodes").iterdir())
    lines = [line for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]
    rows = [json.loads(line) for line in lines]
    lengths = [[s["prompt_tokens"] for s in row["steps"] if s["valid"]] for row in rows]
    builder = PromptBuilder(config.prompt, tiny_tokenizer())
    assert lengths == [[len(builder.build(m.view).ids) for m in moments] for moments in replayed]


def test_episodes_that_go_otherwise_now_are_left_out_with_their_cause(
    evaluated, caplog: pytest.LogCaptureFixture
):
    recordings = read_recordings(evaluated[0])
    steps = recordings[0].steps
    elsewhere = ("the moon", steps[0][1])
    others = [
        replace(recordings[0], steps=(elsewhere, *steps[1:])),
        replace(recordings[1], outcome=Outcome.LOST),
        replace(recordings[2], steps=(*recordings[2].steps, steps[0])),
        replace(recordings[3], task_id="no-such-task-x"),
    ]
    with caplog.at_level(logging.WARNING):
        assert len(replay([*others, recordings[4]], WORLD)) == 1
    assert "4 of 5 recorded episodes cannot be played again" in caplog.text
    with pytest.raises(DataError, match="another observation.*other --env"):
        replay(others[:1], WORLD)


@pytest.mark.parametrize("content", ["", "{}\n", "not json\n", '{"steps": [1]}\n'])
def test_what_is_no_recording_is_refused_with_what_was_expected(tmp_path: Path, content: str):
    (tmp_path / "some.jsonl").write_text(content)
    with pytest.raises(DataError, match="expected"):
        read_recordings(tmp_path / "some.jsonl")


def test_a_line_that_was_being_written_is_left_out(tmp_path: Path, evaluated):
    with gzip.open(evaluated[0] / "transcripts.jsonl.gz", "rt") as lines:
        text = lines.read()
    cut: Any = tmp_path / "cut.jsonl"
    cut.write_text(text[:-20])
    assert read_recordings(cut) == read_recordings(evaluated[0])[:4]
