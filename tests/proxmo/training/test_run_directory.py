"""The files of a run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from proxmo.config_loading import load_toml
from proxmo.credit import assign
from proxmo.errors import CheckpointError, DataError, UsageError
from proxmo.evaluation import Evaluation, TypeResult
from proxmo.training.checkpoint import STATE_FILE
from proxmo.training.run_directory import RunDirectory
from tests.fakes import counter_config

CONFIG = counter_config("some/model")


def evaluation(wins: int) -> Evaluation:
    result = TypeResult.of(wins, 10)
    return Evaluation(
        env_id="Counter-v0",
        split="valid_unseen",
        panel="counter-valid-unseen-11",
        panel_hash="00",
        tasks=11,
        planned=11,
        episodes=10,
        wins=wins,
        errors=1,
        success_rate=result.success_rate,
        low=result.low,
        high=result.high,
        mean_score=0.5,
        mean_length=3.0,
        invalid_action_share=0.25,
        prompt_tokens=70,
        response_tokens=30,
        cost=0.0,
        by_task_type={"even": result},
    )


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    made = RunDirectory(tmp_path / "run", CONFIG, resume=False)
    with made:
        made.create()
    return made


def test_a_run_says_how_it_was_started_and_with_what(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
):
    assert load_toml(directory.path / "config.toml") == CONFIG
    told = json.loads((directory.path / "run.json").read_text())
    assert told["seed"] == 5
    assert told["command"] == sys.argv
    assert {"proxmo", "torch", "transformers", "numpy"} <= told["versions"].keys()


def test_nothing_is_written_before_the_directory_is_created(tmp_path: Path):
    RunDirectory(tmp_path / "run", CONFIG, resume=False)
    assert list(tmp_path.iterdir()) == []


def test_a_resumed_run_keeps_the_story_of_its_beginning_and_takes_the_new_configuration(
    directory: RunDirectory,
):
    first = (directory.path / "run.json").read_text()
    longer = counter_config("some/model", seed=5)
    again = RunDirectory(directory.path, longer, resume=True)
    again.create()
    assert (directory.path / "run.json").read_text() == first
    assert load_toml(directory.path / "config.toml") == longer


def test_only_one_process_at_a_time_has_a_directory(tmp_path: Path):
    first = RunDirectory(tmp_path / "run", CONFIG, resume=False)
    second = RunDirectory(tmp_path / "run", CONFIG, resume=False)
    with first:
        first.create()
        with pytest.raises(UsageError, match="in use by another process"):
            second.create()
    second.create()


def test_a_directory_that_cannot_be_written_is_a_data_error(tmp_path: Path):
    (tmp_path / "file").write_text("")
    made = RunDirectory(tmp_path / "file" / "run", CONFIG, resume=False)
    with pytest.raises(DataError, match="cannot write the run directory"):
        made.create()


def test_a_read_only_place_is_refused_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("os.access", lambda path, mode: False)  # root may write everywhere
    with pytest.raises(DataError, match=f"{tmp_path.name} is read-only"):
        RunDirectory(tmp_path / "new" / "run", CONFIG, resume=False)


def test_the_best_iteration_is_the_latest_of_the_most_successful(directory: RunDirectory):
    assert directory.best_iteration() is None
    for iteration, wins in ((0, 2), (5, 7), (10, 4), (15, 7), (20, 1)):
        directory.record_evaluation(iteration, evaluation(wins))
    assert directory.best_iteration() == 15
    assert directory.evaluations()[1] == (5, evaluation(7))


def test_half_an_evaluation_at_the_end_is_not_one(directory: RunDirectory):
    directory.record_evaluation(0, evaluation(3))
    with (directory.path / "evaluations.jsonl").open("a") as file:
        file.write('{"iteration": 5, "env_id"')
    again = RunDirectory(directory.path, CONFIG, resume=True)
    assert again.evaluations() == [(0, evaluation(3))]


def test_forgetting_takes_later_metrics_evaluations_and_episodes(directory: RunDirectory):
    for iteration in (1, 2, 3):
        directory.metrics.append(iteration, {"train/return_mean": 0.5})
        directory.record_evaluation(iteration, evaluation(iteration))
        name = f"iteration_{iteration:06d}.jsonl.gz"
        (directory.path / "episodes" / name).write_bytes(b"")
        (directory.path / "episodes" / f"{name}.new").write_bytes(b"")
    directory.truncate_after(2)
    rows = (directory.path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(row)["iteration"] for row in rows] == [1, 2]
    assert [iteration for iteration, _ in directory.evaluations()] == [1, 2]
    kept = {path.name for path in (directory.path / "episodes").iterdir()}
    assert not any("000003" in name for name in kept)
    assert {"iteration_000001.jsonl.gz", "iteration_000002.jsonl.gz"} <= kept


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize(
    "full", ["metrics.jsonl", "episodes/iteration_000001.jsonl.gz.new", "evaluations.jsonl"]
)
def test_a_full_disk_is_told_with_the_directory_and_what_to_do(directory: RunDirectory, full: str):
    (directory.path / full).symlink_to("/dev/full")
    nothing = assign("grpo", group=[], episode=[], step=[], reward=[], success=[], state=[])
    with pytest.raises(DataError, match="into the run directory '.*run'.*No space.*--resume"):
        directory.record_iteration(1, {}, [], nothing)
        directory.record_evaluation(1, evaluation(3))


@pytest.mark.parametrize("content", [None, b"", b"no state", b"PK\x03\x04 half a zip"])
def test_a_state_that_cannot_be_read_is_a_checkpoint_error(
    content: bytes | None, directory: RunDirectory, tmp_path: Path
):
    if content is not None:
        (tmp_path / STATE_FILE).write_bytes(content)
    with pytest.raises(CheckpointError, match=f"{STATE_FILE} cannot be read, so the run cannot"):
        directory.load_state(tmp_path)


def test_the_initial_model_is_kept_once(directory: RunDirectory, tmp_path: Path):
    source = tmp_path / "cache"
    source.mkdir()
    (source / "config.json").write_text("first")
    directory.keep_initial(source)
    (source / "config.json").write_text("second")
    directory.keep_initial(source)
    assert (directory.initial / "config.json").read_text() == "first"
