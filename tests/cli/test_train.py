"""`proxmo train` resolves, runs and reports; stopping loses nothing; a run is never overwritten."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from proxmo.config_loading import differing_keys, load_toml, resolve


def test_the_flags_reach_the_trainer(proxmo, trainer, tmp_path: Path):
    done = proxmo(
        *("train", "--env", "ALFWorld-v0", "--method", "grpo", "--preset", "smoke", "--seed", "7"),
        *("--iterations", "5", "--device", "cpu", "--set", "optim.lr=1e-3", "--out", "here"),
        *("--minutes", "2.5"),
    )
    assert done.code == 0, done.err
    flags = {
        "env.id": "ALFWorld-v0",
        "credit.method": "grpo",
        "seed": 7,
        "optim.iterations": 5,
        "model.device": "cpu",
    }
    assert trainer.config == resolve(["smoke"], flags, ["optim.lr=1e-3"])
    assert trainer.arguments["out"] == Path("here")
    assert trainer.arguments["resume"] is False
    assert trainer.arguments["minutes"] == 2.5


def test_a_dry_run_prints_the_resolved_configuration_and_touches_nothing(
    proxmo, trainer, tmp_path: Path
):
    done = proxmo("train", "--preset", "smoke", "--set", "optim.lr=0.5", "--dry-run")
    assert (done.code, done.err, trainer.config) == (0, "", None)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "config.toml").write_text(done.out)
    assert load_toml(tmp_path / "config.toml") == resolve(["smoke"], {}, ["optim.lr=0.5"])


def test_the_run_directory_is_named_after_environment_method_and_seed(proxmo, trainer):
    proxmo("train", "--env", "proxmo_envs:ALFWorld-v0", "--method", "gigpo", "--seed", "3")
    assert str(trainer.arguments["out"]).startswith("runs/ALFWorld-v0-gigpo-3-")


def test_paths_are_kept_absolute_so_that_a_run_can_be_continued_from_anywhere(
    proxmo, trainer, tmp_path: Path
):
    (tmp_path / "games").mkdir()
    proxmo("train", "--data", "games", "--model", "org/model", "--out", "a")
    assert trainer.config.env.data == str(tmp_path / "games")
    assert trainer.config.model.name == "org/model"
    (tmp_path / "tiny").mkdir()
    (tmp_path / "generated").mkdir()
    proxmo("train", "--data", "generated", "--model", "tiny", "--out", "b")
    assert (trainer.config.env.data, trainer.config.model.name) == ("generated", "tiny")


def test_the_result_is_on_stdout_and_the_progress_on_stderr(proxmo, trainer):
    done = proxmo("train", "--out", "my run", "--iterations", "3")
    assert done.code == 0
    assert "iteration 3/3  success 50.0 %" in done.err
    assert "iteration" not in done.out.replace("iterations", "")
    for part in ("my run", "3, done", "40.0 % [20.0, 70.0]", "80.0 % [40.0, 90.0]"):
        assert part in done.out
    assert "proxmo eval --checkpoint 'my run/checkpoints/step_3'" in done.out
    assert "resume" not in done.out


def test_json_is_all_there_is_on_stdout(proxmo, trainer):
    result = json.loads(proxmo("train", "--out", "run", "--json", "--iterations", "2").out)
    after = result.pop("after")
    assert (result.pop("before")["wins"], after["wins"], after["success_rate"]) == (4, 8, 0.8)
    assert result == {
        "run": "run",
        "checkpoint": "run/checkpoints/step_2",
        "iterations_done": 2,
        "finished": True,
        "resume": None,
        "metrics": {"train/success_rate": 0.5},
    }


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_stops_after_the_step_and_prints_the_resume_command(
    proxmo, trainer, number: signal.Signals
):
    asked: list[bool] = []

    def interrupted(running) -> None:
        os.kill(os.getpid(), number)
        asked.append(running.stop_requested)

    trainer.during_run, trainer.iterations_done = interrupted, 2
    before = signal.getsignal(number)
    done = proxmo("train", "--out", "my run")
    assert asked == [True]
    assert done.code == 3
    assert "resume with: proxmo train --resume 'my run'" in done.out.splitlines()
    assert "stopping after this step" in done.err
    assert signal.getsignal(number) == before


def test_the_second_signal_stops_at_once_and_still_names_the_way_back(proxmo, trainer):
    def twice(running) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("went on after the second signal")

    trainer.during_run = twice
    done = proxmo("train", "--out", "run")
    assert done.code == 3
    assert "what was saved is intact; continue: proxmo train --resume run" in done.err


def test_a_time_budget_that_is_used_up_is_done_and_can_be_continued(proxmo, trainer):
    trainer.iterations_done = 2
    done = proxmo("train", "--out", "run", "--minutes", "1")
    assert done.code == 0
    assert "2, stopped" in done.out
    assert "resume with: proxmo train --resume run" in done.out


def test_a_signal_during_the_last_step_changes_nothing(proxmo, trainer):
    trainer.during_run = lambda running: os.kill(os.getpid(), signal.SIGINT)
    assert proxmo("train", "--out", "run").code == 0


@pytest.mark.parametrize("saved", [True, False])
def test_a_failure_on_the_way_names_the_way_back_if_anything_was_saved(
    proxmo, trainer, saved: bool
):
    def full(running) -> None:
        raise OSError(28, "No space left on device")

    trainer.during_run, trainer.saves = full, saved
    done = proxmo("train", "--out", "run")
    assert done.code == 1
    assert done.err.splitlines()[-1] == "error: [Errno 28] No space left on device"
    assert ("continue: proxmo train --resume run\n" in done.err) is saved


def test_a_directory_that_holds_something_is_never_trained_into(proxmo, trainer):
    for name in ("out", "empty"):
        Path(name).mkdir()
    Path("out/notes.txt").write_text("mine")
    Path("file").touch()
    done = proxmo("train", "--out", "out")
    assert (done.code, trainer.config) == (2, None)
    assert done.error_line == "error: --out out is not empty; choose another --out"
    assert "--out file is a file" in proxmo("train", "--out", "file").error_line
    assert proxmo("train", "--out", "empty").code == 0
    done = proxmo("train", "--out", "empty")
    assert done.code == 2 and "`proxmo train --resume empty`" in done.error_line


def test_resuming_takes_the_saved_configuration_not_the_presets_of_today(proxmo, trainer):
    command = ["train", "--preset", "smoke", "--seed", "4", "--method", "grpo", "--out", "run"]
    proxmo(*command, "--set", "optim.lr=0.125", "--set", "env.kwargs={}")
    saved = trainer.config
    for again in (("train",), (*command, "--set", "optim.lr=0.125", "--set", "env.kwargs={}")):
        assert proxmo(*again, "--resume", "run").code == 0
        assert trainer.config == saved
        assert trainer.arguments["resume"] is True
        assert trainer.arguments["out"] == Path("run")


@pytest.mark.parametrize(
    "change",
    [
        "checkpoint.every=2",
        "model.gradient_checkpointing=true",
        "optim.iterations=9",
        "optim.micro_batch_tokens=99",
        "rollout.engine_url=http://two:8000",
        "rollout.episode_timeout_s=9.0",
        "rollout.gpu_memory=0.25",
        "rollout.max_live=4",
    ],
)
def test_a_resumed_run_may_last_longer_and_be_fitted_to_its_machine(proxmo, trainer, change: str):
    """An error for want of memory names such settings: they have to help the run it ended."""
    server = ("rollout.engine=vllm-server", "--set", "rollout.engine_url=http://one:8000")
    proxmo("train", "--out", "run", "--set", *server)
    before = trainer.config
    assert proxmo("train", "--resume", "run", "--set", change).code == 0
    assert differing_keys(before, trainer.config) == [change.partition("=")[0]]


def test_a_resumed_run_cannot_become_another_one(proxmo, trainer):
    proxmo("train", "--out", "run")
    for change, complaint in (
        (("--seed", "9", "--set", "optim.lr=0.5"), "started with another optim.lr, seed"),
        (("--out", "other"), "leave --out other out"),
    ):
        done = proxmo("train", "--resume", "run", *change)
        assert done.code == 2 and complaint in done.error_line


def test_a_wrong_key_is_found_before_the_trainer_is_loaded(proxmo, trainer):
    done = proxmo("train", "--set", "optim.lrr=1")
    assert (done.code, trainer.config) == (2, None)
    assert done.error_line == (
        "error: unknown configuration key 'optim.lrr'; did you mean optim.lr?"
    )
