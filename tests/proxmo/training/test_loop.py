"""Whole runs in a world of the user's own: what they leave behind, how they stop and go on."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import proxmo
from proxmo.checkpoints import list_checkpoints
from proxmo.config import (
    CheckpointConfig,
    Config,
    CreditConfig,
    EnvConfig,
    EvalConfig,
    ModelConfig,
    OptimConfig,
    PromptConfig,
    RolloutConfig,
)
from proxmo.config_loading import resolve
from proxmo.errors import DataError, RolloutError, UsageError
from proxmo.listener import Listener
from proxmo.training.loop import Run, Trainer
from proxmo.training.metrics_file import read_rows
from tests.fakes import COUNTER, CounterEnv, counter_config, save_tiny_model

torch = pytest.importorskip("torch")

# Everything that draws or remembers something: reference, several minibatches, warm-up.
FULL = {
    "credit": CreditConfig(method="proxmo"),
    "optim": OptimConfig(
        iterations=6, lr=1e-2, kl_coef=0.05, epochs=2, minibatches=3, warmup_steps=9
    ),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def uninterrupted(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Six iterations in one go, for others to be compared with."""
    return run(counter_config(model, **FULL), tmp_path_factory.mktemp("runs") / "whole")


def run(config: Config, out: Path, **options: Any) -> Run:
    return Trainer(config, out=out, **options).run()


def iterations(config: Config, number: int) -> Config:
    return replace(config, optim=replace(config.optim, iterations=number))


def weights(checkpoint: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(checkpoint / "model.safetensors")


def rows(path: Path) -> list[dict[str, Any]]:
    """The metrics, without those that tell how long something took."""
    return [
        {k: v for k, v in row.items() if not k.startswith(("time/", "speed/"))}
        for row in read_rows(path / "metrics.jsonl")
    ]


def episodes(path: Path) -> dict[str, list[dict[str, Any]]]:
    found = {}
    for file in sorted((path / "episodes").iterdir()):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            found[file.name] = [json.loads(line) for line in lines]
    return found


def evaluated(path: Path) -> list[int]:
    lines = (path / "evaluations.jsonl").read_text().splitlines()
    return [json.loads(line)["iteration"] for line in lines]


def assert_same_run(one: Path, other: Path, iteration: int = 6) -> None:
    """To the bit: weights, optimiser, metrics, every token's episode."""
    assert rows(one) == rows(other)
    assert [row["iteration"] for row in rows(one)] == list(range(1, iteration + 1))
    assert episodes(one) == episodes(other)
    ours, theirs = (path / "checkpoints" / f"step_{iteration}" for path in (one, other))
    first, second = weights(ours), weights(theirs)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    states = [torch.load(path / "trainer_state.pt", weights_only=True) for path in (ours, theirs)]
    moments = [state["optimizer"]["state"] for state in states]
    assert moments[0].keys() == moments[1].keys() and moments[0]
    for number, moment in moments[0].items():
        assert all(torch.equal(moment[name], moments[1][number][name]) for name in moment)
    assert states[0]["schedule"] == states[1]["schedule"]


class StopsAt(Listener):
    """Asks for the end during the given iteration."""

    def __init__(self, iteration: int) -> None:
        self.at = iteration
        self.trainer: Trainer | None = None

    def iteration(self, metrics: Mapping[str, float], iteration: int, total: int) -> None:
        if iteration == self.at:
            assert self.trainer is not None
            self.trainer.request_stop()


def stopped_at(iteration: int, config: Config, out: Path, **options: Any) -> Run:
    listener = StopsAt(iteration)
    listener.trainer = Trainer(config, out=out, listener=listener, **options)
    return listener.trainer.run()


def test_training_changes_the_weights_and_records_every_iteration(uninterrupted: Run, model: Path):
    result = uninterrupted
    assert (result.iterations_done, result.finished) == (6, True)
    assert result.checkpoint == result.path / "checkpoints" / "step_6"
    assert evaluated(result.path) == [0, 6]
    assert result.before is not None and result.after is not None
    before, after = weights(model), weights(result.checkpoint)
    assert max(float((after[name] - before[name]).abs().max()) for name in before) > 1e-3
    recorded = rows(result.path)
    assert len(recorded) == 6
    last = {k: v for k, v in result.metrics.items() if not k.startswith(("time/", "speed/"))}
    assert recorded[-1] == {"iteration": 6, **last}
    assert all(row["loss/grad_norm"] > 0 for row in recorded)
    # From the second optimiser step of an iteration on, and only then, the policy has moved.
    assert all(row["loss/sampler_gap"] > 1e-4 for row in recorded)


def test_equal_seeds_make_equal_runs_and_others_other_ones(
    uninterrupted: Run, model: Path, tmp_path: Path
):
    config = counter_config(model, **FULL)
    run(config, tmp_path / "again")
    assert_same_run(uninterrupted.path, tmp_path / "again")
    run(iterations(replace(config, seed=6), 1), tmp_path / "other")
    first = [e["task_id"] for e in episodes(tmp_path / "other")["iteration_000001.jsonl.gz"]]
    ours = [e["task_id"] for e in episodes(uninterrupted.path)["iteration_000001.jsonl.gz"]]
    assert first != ours


def test_three_iterations_and_three_more_equal_six_to_the_bit(
    uninterrupted: Run, model: Path, tmp_path: Path
):
    config, out = counter_config(model, **FULL), tmp_path / "run"
    first = run(iterations(config, 3), out)
    assert (first.iterations_done, first.finished) == (3, True)
    second = run(config, out, resume=True)
    assert (second.iterations_done, second.finished) == (6, True)
    assert_same_run(uninterrupted.path, out)
    assert evaluated(out) == [0, 3, 6]
    assert second.before == first.before == uninterrupted.before
    assert second.after == uninterrupted.after


def test_a_run_that_was_asked_to_stop_saves_and_goes_on_to_the_same_end(
    uninterrupted: Run, model: Path, tmp_path: Path
):
    config, out = counter_config(model, **FULL), tmp_path / "run"
    # No checkpoint is due then: it is written because of the stop.
    config = replace(config, checkpoint=CheckpointConfig(every=100))
    stopped = stopped_at(4, config, out)
    assert (stopped.iterations_done, stopped.finished, stopped.after) == (4, False, None)
    assert stopped.checkpoint.is_dir()
    assert evaluated(out) == [0]
    run(config, out, resume=True)
    assert_same_run(uninterrupted.path, out)
    assert evaluated(out) == [0, 6]


@pytest.mark.parametrize(("every", "died"), [(2, 5), (100, 1)])
def test_what_was_done_after_the_last_checkpoint_is_forgotten_and_done_again(
    every: int, died: int, uninterrupted: Run, model: Path, tmp_path: Path
):
    config, out = counter_config(model, **FULL), tmp_path / "run"
    config = replace(config, checkpoint=CheckpointConfig(every=every))

    class Dies(Listener):
        def iteration(self, metrics: Mapping[str, float], iteration: int, total: int) -> None:
            if iteration == died:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(config, out, listener=Dies())
    assert [row["iteration"] for row in rows(out)] == list(range(1, died + 1))
    assert [number for number, _ in list_checkpoints(out)] == ([2, 4] if died == 5 else [])
    # As a process that died while it wrote would leave them.
    for name in ("metrics.jsonl", "evaluations.jsonl"):
        with (out / name).open("a") as file:
            file.write('{"iteration": 6, "tra')
    (out / "episodes" / "iteration_000006.jsonl.gz.new").write_bytes(b"half")
    run(config, out, resume=True)
    assert_same_run(uninterrupted.path, out)
    assert evaluated(out) == [0, 6]


# Forks trainers from a process that has loaded everything and computed nothing, and kills them.
KILLED = """
import os, random, signal, sys, time
from pathlib import Path
import torch, transformers, faiss
from proxmo.training.metrics_file import read_rows
from proxmo.training.loop import Trainer
from proxmo.config_loading import load_toml
import tests.fakes

config, out, draw = load_toml(Path(sys.argv[1])), Path(sys.argv[2]), random.Random(1)

def start():
    child = os.fork()
    if not child:
        try:
            Trainer(config, out=out, resume=(out / "config.toml").exists()).run()
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return child

def reached():
    return len(read_rows(out / "metrics.jsonl")) if (out / "metrics.jsonl").exists() else 0

kills, deadline = 0, time.monotonic() + 200
for goal in (1, 2, 4):
    child, status = start(), None
    while reached() < goal and not status:
        assert time.monotonic() < deadline
        done, status = os.waitpid(child, os.WNOHANG)
        assert not (done and status), status
        time.sleep(0.002)
    time.sleep(draw.uniform(0, 0.25))
    os.kill(child, signal.SIGKILL)
    kills += os.waitpid(child, 0)[1] == signal.SIGKILL
assert os.waitpid(start(), 0)[1] == 0
print(kills)
"""


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_ends_as_if_it_had_not_been(
    model: Path, tmp_path: Path, repository: Path
):
    from proxmo.config_loading import dump_toml

    config = counter_config(model, **{**FULL, "checkpoint": CheckpointConfig(every=2, keep=2)})
    (tmp_path / "config.toml").write_text(dump_toml(config))
    done = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path / "config.toml", tmp_path / "run"],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=repository,
        # Sums over several threads are only the same for the same number of threads.
        env={**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    # On a fast machine the last one may come too late.
    assert int(done.stdout) >= 2
    run(config, tmp_path / "whole")
    assert_same_run(tmp_path / "whole", tmp_path / "run")
    assert evaluated(tmp_path / "run") == [0, 6]


def test_a_world_that_hangs_does_not_hold_up_the_evaluation(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    over, step = threading.Event(), CounterEnv.step

    def hangs(env: CounterEnv, action: str) -> Any:
        if env.task_id.startswith("valid"):
            over.wait(10)
        return step(env, action)

    monkeypatch.setattr(CounterEnv, "step", hangs)
    rollout = RolloutConfig(tasks=1, group_size=2, episode_timeout_s=0.2)
    ended = run(iterations(counter_config(model, rollout=rollout), 1), tmp_path / "run")
    over.set()
    assert ended.finished and ended.before is not None and ended.after is not None
    causes = {"EpisodeTimeout: no end after 0.2 s": 2}
    assert [ended.before.error_causes, ended.after.error_causes] == [causes, causes]


def test_resuming_a_finished_run_changes_nothing(uninterrupted: Run, model: Path):
    path = uninterrupted.path
    before = {p: p.read_bytes() for p in path.rglob("*") if p.is_file()}
    again = run(counter_config(model, **FULL), path, resume=True)
    assert replace(again, metrics=uninterrupted.metrics) == uninterrupted
    assert {p: p.read_bytes() for p in path.rglob("*") if p.is_file()} == before


def test_a_run_stopped_in_its_last_iteration_is_measured_when_it_is_resumed(
    model: Path, tmp_path: Path
):
    config, out = iterations(counter_config(model), 2), tmp_path / "run"
    stopped = stopped_at(2, config, out)
    assert (stopped.iterations_done, stopped.finished, stopped.after) == (2, False, None)
    resumed = run(config, out, resume=True)
    assert resumed.after is not None
    assert evaluated(out) == [0, 2]
    assert len(rows(out)) == 2


def test_a_stop_during_the_warm_start_ends_it_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PROXMO_CACHE", str(tmp_path / "cache"))
    trainer = Trainer(resolve(), out=tmp_path / "run")
    trainer.request_stop()
    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    assert not (tmp_path / "run").exists() and not (tmp_path / "cache").exists()


def test_a_run_without_time_saves_where_it_stands(model: Path, tmp_path: Path):
    config, out = iterations(counter_config(model), 2), tmp_path / "run"
    result = run(config, out, minutes=1e-9)
    assert (result.iterations_done, result.finished) == (0, False)
    assert result.checkpoint == out / "checkpoints" / "step_0"
    assert (evaluated(out), rows(out) if (out / "metrics.jsonl").exists() else []) == ([0], [])
    assert run(config, out, resume=True).finished
    assert len(rows(out)) == 2


def test_a_run_stops_before_the_iteration_that_would_begin_too_late(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # A clock that shows the number of iterations as minutes.
    clock = SimpleNamespace(now=0.0)

    class Ticks(Listener):
        def iteration(self, metrics: Mapping[str, float], iteration: int, total: int) -> None:
            clock.now = 60.0 * iteration

    fake = SimpleNamespace(monotonic=lambda: clock.now + 1e-3 * next(ticks))
    ticks = iter(range(10**6))
    monkeypatch.setattr("proxmo.training.loop.time", fake)
    config = replace(counter_config(model), checkpoint=CheckpointConfig(every=100))
    result = run(config, tmp_path / "run", minutes=2.5, listener=Ticks())
    assert (result.iterations_done, result.finished) == (3, False)
    assert evaluated(tmp_path / "run") == [0, 3]
    assert result.after is not None and result.checkpoint.is_dir()


def test_evaluations_and_checkpoints_come_as_often_as_asked_and_the_best_is_kept(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    rates = iter([0.5, 0.25, 0.75, 0.5, 0.25])
    original = proxmo.training.loop.evaluate_agent

    def rigged(*arguments: Any, **options: Any) -> Any:
        return replace(original(*arguments, **options), success_rate=next(rates))

    monkeypatch.setattr("proxmo.training.loop.evaluate_agent", rigged)
    config = counter_config(
        model,
        optim=OptimConfig(iterations=7, lr=1e-2, kl_coef=0.0),
        eval=EvalConfig(episodes=2, every=2),
        checkpoint=CheckpointConfig(every=3, keep=1),
    )
    result = run(config, tmp_path / "run")
    assert evaluated(result.path) == [0, 2, 4, 6, 7]
    # 4 was the best on the validation tasks, 7 is the newest.
    assert [number for number, _ in list_checkpoints(result.path)] == [4, 7]


def test_zero_iterations_measure_and_save_the_model_as_it_is(model: Path, tmp_path: Path):
    result = run(iterations(counter_config(model), 0), tmp_path / "run")
    assert (result.finished, evaluated(result.path)) == (True, [0])
    saved, given = weights(result.checkpoint), weights(model)
    assert all(torch.equal(saved[name], given[name]) for name in given)


def test_episodes_are_recorded_with_their_credit(uninterrupted: Run):
    recorded = episodes(uninterrupted.path)
    assert list(recorded) == [f"iteration_{i:06d}.jsonl.gz" for i in range(1, 7)]
    played = recorded["iteration_000001.jsonl.gz"]
    assert [(e["group"], e["member"]) for e in played] == [(g, m) for g in (0, 1) for m in range(4)]
    assert len({e["task_id"] for e in played}) == 2
    for one in played:
        for at, step in enumerate(one["steps"]):
            later = [s["reward"] * 0.95**i for i, s in enumerate(one["steps"][at:])]
            assert step["step_return"] == pytest.approx(sum(later))
            penalty = 0.0 if step["valid"] else 0.1
            combined = step["episode_advantage"] + step["step_advantage"] - penalty
            assert step["advantage"] == pytest.approx(combined)
    assert {step["valid"] for one in played for step in one["steps"]} == {True, False}


def test_a_checkpoint_is_evaluated_with_the_world_and_the_prompt_it_was_trained_with(
    uninterrupted: Run,
):
    # The seed of the draws alone is the caller's: five is that of the run.
    assert proxmo.evaluate(uninterrupted.checkpoint, seeds=[5]) == uninterrupted.after
    assert proxmo.evaluate(uninterrupted.path, seeds=[5]) == uninterrupted.after


def test_broken_tasks_are_counted_and_training_goes_on(model: Path, tmp_path: Path):
    kwargs = {"broken": ["train-0", "train-1", "train-2"], "broken_at": 1}
    config = counter_config(model, env=EnvConfig(id=COUNTER, kwargs=kwargs))
    result = run(iterations(config, 3), tmp_path / "run")
    recorded = rows(result.path)
    played = [e for one in episodes(result.path).values() for e in one]
    errors = [e for e in played if e["outcome"] == "error"]
    assert sum(row["train/error_episodes"] for row in recorded) == len(errors) > 0
    assert {e["cause"] for e in errors} == {"ConnectionError: the world fell apart"}
    assert len(errors) < len(played)


def test_when_no_episode_can_be_used_the_causes_are_told_and_what_was_saved_stays(
    model: Path, tmp_path: Path
):
    config, out = counter_config(model), tmp_path / "run"
    tight = PromptConfig(style="terse", history=1, max_prompt_tokens=5)
    with pytest.raises(RolloutError, match="the prompt does not fit its token budget"):
        run(replace(config, prompt=tight), tmp_path / "tight")
    run(iterations(config, 1), out)
    kwargs = {"broken": [f"train-{i}" for i in range(5)], "broken_at": 1}
    config = replace(config, env=EnvConfig(id=COUNTER, kwargs=kwargs))
    with pytest.raises(RolloutError, match=r"iteration 2 can.*ConnectionError: the world fell"):
        run(config, out, resume=True)
    assert [number for number, _ in list_checkpoints(out)] == [1]


@pytest.mark.parametrize(
    ("section", "value", "error", "text"),
    [
        ("env", EnvConfig(id="Countr-v0"), UsageError, "unknown environment 'Countr-v0'"),
        ("model", ModelConfig(name="no/such/model"), DataError, "no/such/model"),
        ("prompt", PromptConfig(max_prompt_tokens=10_000), UsageError, "context of 512"),
    ],
    ids=["environment", "model", "context"],
)
def test_a_request_that_cannot_be_met_leaves_no_run_behind(
    section: str, value: Any, error: type[Exception], text: str, model: Path, tmp_path: Path
):
    with pytest.raises(error, match=text):
        run(replace(counter_config(model), **{section: value}), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_new_run_does_not_go_where_something_is(model: Path, tmp_path: Path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not empty.*--resume"):
        Trainer(counter_config(model), out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_there_is_nothing_to_resume_where_there_is_no_run(model: Path, tmp_path: Path):
    with pytest.raises(UsageError, match="no run to resume"):
        Trainer(counter_config(model), out=tmp_path / "nothing", resume=True)
    assert list(tmp_path.iterdir()) == []
