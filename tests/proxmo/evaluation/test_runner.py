"""Evaluation on a panel: which tasks, how they count, and what a checkpoint brings along."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import proxmo
from proxmo.config import EnvConfig
from proxmo.errors import CheckpointError, UnknownNameError, UsageError
from proxmo.evaluation import (
    Evaluation,
    evaluate_agent,
    evaluate_checkpoint,
    evaluate_policy,
    open_panel,
)
from proxmo.evaluation.statistics import wilson_interval
from proxmo.listener import Listener
from proxmo.training.checkpoint import save_checkpoint
from proxmo.training.run_directory import RunDirectory
from tests.fakes import COUNTER, ScriptedAgent, counter_config, tiny_model, tiny_tokenizer


def counter(tasks: int = 20, **options: Any) -> EnvConfig:
    return EnvConfig(id=COUNTER, kwargs={"tasks": tasks, **options})


class Notes:
    """Plays "u" and notes which tasks it saw."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.agent = ScriptedAgent(self._decide)

    def _decide(self, situation: Any) -> str:
        if situation.view.step == 0:
            self.seen.append(situation.info["task_id"])
        return "u" if situation.view.step == 1 else ""


def panel(episodes: int | None = None, **options: Any) -> list[str]:
    notes = Notes()
    split = options.pop("split", "valid_unseen")
    evaluate_agent(notes.agent, counter(), split=split, episodes=episodes, **options)
    return notes.seen


def test_every_task_of_the_split_is_played_once():
    assert sorted(panel()) == sorted(f"valid_unseen-{i}" for i in range(20))
    assert {task.rpartition("-")[0] for task in panel(split="valid_seen")} == {"valid_seen"}


@pytest.mark.parametrize("workers", [1, 3, 8, 1000])
@pytest.mark.parametrize("policy", ["expert", "random"])
def test_the_panel_and_its_result_are_the_same_with_any_number_of_workers(
    policy: str, workers: int
):
    assert panel(8, workers=workers) == panel(8)

    def result(workers: int) -> Evaluation:
        return evaluate_policy(
            policy, env=COUNTER, split="train", kwargs={"free": False}, workers=workers
        )

    assert result(workers) == result(128)
    assert result(128).wins == 5 if policy == "expert" else 0 < result(128).wins < 5


def test_a_smaller_panel_lies_in_every_larger_one_whatever_the_seeds_of_the_draws():
    panels = [set(panel(number, seed=number)) for number in (1, 5, 12, 20)]
    assert [len(one) for one in panels] == [1, 5, 12, 20]
    assert all(small < large for small, large in zip(panels, panels[1:], strict=False))


def test_more_episodes_than_tasks_play_every_task_once():
    assert len(panel(50)) == 20


@pytest.mark.parametrize("episodes", [0, -3])
def test_fewer_than_one_episode_is_a_usage_error(episodes: int):
    with pytest.raises(UsageError, match=f"episodes is {episodes}"):
        panel(episodes)


def test_errors_are_counted_apart_and_are_no_losses():
    broken = [f"train-{i}" for i in range(5)]
    env = counter(tasks=10, broken=broken, broken_at=2)
    result = evaluate_agent(Notes().agent, env, split="train")
    assert (result.episodes, result.wins, result.errors) == (5, 5, 5)
    assert result.success_rate == 1.0
    assert (result.low, result.high) == wilson_interval(5, 5)
    assert result.mean_length == 2.0
    assert {kind: one.episodes for kind, one in result.by_task_type.items()} == {
        "even": 2,
        "odd": 3,
    }


def test_a_panel_of_errors_alone_knows_nothing():
    env = counter(tasks=2, broken=["train-0", "train-1"], broken_at=1)
    result = evaluate_agent(Notes().agent, env, split="train")
    assert (result.episodes, result.errors) == (0, 2)
    assert (result.low, result.high) == (0.0, 1.0)
    assert result.by_task_type == {}


def test_progress_is_told_up_to_the_last_episode():
    told: list[tuple[str, int | None, int | None]] = []

    class Hears(Listener):
        def phase(self, name: str, *, done=None, total=None, text="", **details: Any) -> None:
            told.append((name, done, total))

    panel(8, listener=Hears())
    assert told[-1] == ("evaluating", 8, 8)


def test_all_official_games_of_known_rooms_take_the_expert_less_than_five_seconds(
    official_games: Path,
):
    begun = time.process_time()
    result = evaluate_policy("expert", panel=open_panel("alfworld-valid-seen", str(official_games)))
    # Of this process, so that a busy machine does not fail it; unpacking the data is included.
    assert time.process_time() - begun < 5
    assert (result.episodes, result.wins, result.complete) == (140, 140, True)


def test_an_unknown_player_is_named_with_those_there_are():
    with pytest.raises(UnknownNameError, match="did you mean expert"):
        evaluate_policy("exprt", env=COUNTER)


@pytest.mark.parametrize("policy", ["expert", "random"])
def test_options_no_environment_has_are_one_error_and_not_one_per_episode(policy: str):
    with pytest.raises(UsageError, match=r"cannot be made with .*colour"):
        evaluate_policy(policy, env=COUNTER, kwargs={"colour": "red"})


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("run")
    config = counter_config("some/model", env=counter(tasks=9))
    return save_checkpoint(
        run / "checkpoints",
        4,
        model=tiny_model(),
        tokenizer=tiny_tokenizer(),
        settings=RunDirectory(run / "new", config, resume=False).settings(),
        state=None,
    )


def test_a_checkpoint_brings_its_world_its_prompt_and_its_panel(checkpoint: Path):
    result = evaluate_checkpoint(checkpoint)
    assert (result.env_id, result.split, result.episodes) == (COUNTER, "valid_unseen", 2)
    assert result.panel == "Counter-v0/valid_unseen/2"
    assert result == proxmo.evaluate(checkpoint.parent.parent)


def test_what_is_given_replaces_what_the_checkpoint_brings(checkpoint: Path):
    result = evaluate_checkpoint(checkpoint, split="train", episodes=3)
    assert (result.split, result.episodes) == ("train", 3)
    greedy = [evaluate_checkpoint(checkpoint, temperature=0.0, seeds=[seed]) for seed in (1, 2)]
    assert greedy[0].mean_length == greedy[1].mean_length


def test_the_same_world_under_its_full_name_keeps_its_options(checkpoint: Path):
    same = evaluate_checkpoint(checkpoint, env="Counter-v0", episodes=9)
    assert same == evaluate_checkpoint(checkpoint, env=COUNTER, episodes=9)
    assert same.env_id == COUNTER


def test_another_world_starts_from_its_own_defaults(checkpoint: Path):
    result = evaluate_checkpoint(checkpoint, env="ALFWorld-v0", data="generated", episodes=1)
    assert (result.env_id, result.episodes) == ("ALFWorld-v0", 1)


def test_what_is_no_checkpoint_is_a_checkpoint_error(tmp_path: Path):
    with pytest.raises(CheckpointError):
        proxmo.evaluate(tmp_path)
