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


@pytest.mark.parametrize("minutes", ["nan", "inf"])
def test_a_time_limit_that_never_comes_is_refused(proxmo, trainer, minutes: str):
    done = proxmo("train", "--minutes", minutes, "--out", "a")
    assert done.code == 2 and f"'--minutes': '{minutes}' is not a finite number" in done.err


def test_the_run_directory_is_named_after_environment_method_and_seed(proxmo, trainer):
    proxmo("train", "--env", "proxmo_envs:ALFWorld-v0", "--method", "gigpo", "--seed", "3")
    out = trainer.arguments["out"]
    assert out.parent == Path("runs")
    assert out.name.startswith("ALFWorld-v0-gigpo-3-")


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


@pytest.mark.parametrize("verb", ["train", "sft"])
@pytest.mark.parametrize(("flag", "key"), [("--model", "model.name"), ("--data", "env.data")])
def test_an_empty_path_is_refused_and_not_the_current_directory(
    proxmo, trainer, verb: str, flag: str, key: str
):
    done = proxmo(verb, flag, "", "--out", "a")
    assert done.code == 2 and f"{key} is empty" in done.err


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
    done = proxmo("train", "--out", "run", "--json", "--iterations", "2")
    result = json.loads(done.out)
    assert (result["run"], result["iterations_done"], result["finished"]) == ("run", 2, True)
    assert result["checkpoint"] == "run/checkpoints/step_2"
    assert result["resume"] is None
    assert result["after"]["success_rate"] == 0.8
    assert result["metrics"] == {"train/success_rate": 0.5}


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


def test_a_failure_on_the_way_names_the_way_back(proxmo, trainer):
    def full(running) -> None:
        raise OSError(28, "No space left on device")

    trainer.during_run = full
    done = proxmo("train", "--out", "run")
    assert done.code == 1
    hint, error = done.err.splitlines()[-2:]
    assert hint.endswith("continue: proxmo train --resume run")
    assert error == "error: [Errno 28] No space left on device"


def test_a_failure_before_the_first_checkpoint_promises_nothing(proxmo, trainer):
    def full(running) -> None:
        raise OSError(28, "No space left on device")

    trainer.during_run, trainer.saves = full, False
    assert "--resume" not in proxmo("train", "--out", "run").err


def test_a_directory_that_holds_something_is_never_trained_into(proxmo, trainer, tmp_path: Path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    done = proxmo("train", "--out", "out")
    assert (done.code, trainer.config) == (2, None)
    assert done.error_line == "error: --out out is not empty; choose another --out"


def test_a_run_that_is_there_is_proposed_to_be_resumed(proxmo, trainer):
    proxmo("train", "--out", "run")
    done = proxmo("train", "--out", "run")
    assert done.code == 2
    assert "`proxmo train --resume run`" in done.error_line


def test_an_empty_directory_can_be_trained_into_and_a_file_cannot(proxmo, trainer, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    assert proxmo("train", "--out", "empty").code == 0
    (tmp_path / "file").write_text("")
    assert "--out file is a file" in proxmo("train", "--out", "file").error_line


def test_resuming_takes_the_saved_configuration_not_the_presets_of_today(proxmo, trainer):
    proxmo("train", "--out", "run", "--set", "optim.lr=0.125", "--set", "env.kwargs={}")
    saved = trainer.config
    assert proxmo("train", "--resume", "run").code == 0
    assert trainer.config == saved
    assert trainer.arguments["resume"] is True
    assert trainer.arguments["out"] == Path("run")


def test_the_same_command_with_resume_continues(proxmo, trainer):
    command = ["train", "--preset", "smoke", "--seed", "4", "--method", "grpo", "--out", "run"]
    proxmo(*command)
    saved = trainer.config
    assert proxmo(*command, "--resume", "run").code == 0
    assert trainer.config == saved


def test_a_resumed_run_may_last_longer_and_save_more_often(proxmo, trainer):
    proxmo("train", "--out", "run", "--iterations", "3")
    done = proxmo("train", "--resume", "run", "--iterations", "9", "--set", "checkpoint.every=2")
    assert done.code == 0
    assert (trainer.config.optim.iterations, trainer.config.checkpoint.every) == (9, 2)


@pytest.mark.parametrize(
    "change",
    [
        "rollout.max_live=4",
        "rollout.gpu_memory=0.25",
        "rollout.episode_timeout_s=9.0",
        "model.gradient_checkpointing=true",
        "optim.micro_batch_tokens=99",
    ],
)
def test_a_resumed_run_may_be_fitted_to_its_machine(proxmo, trainer, change: str):
    """An error for want of memory names these settings: they have to help the run it ended."""
    proxmo("train", "--out", "run")
    before = trainer.config
    assert proxmo("train", "--resume", "run", "--set", change).code == 0
    assert differing_keys(before, trainer.config) == [change.partition("=")[0]]


def test_a_resumed_run_may_ask_a_server_at_another_address(proxmo, trainer):
    command = ["train", "--set", "rollout.engine=vllm-server", "--set"]
    proxmo(*command, "rollout.engine_url=http://one:8000", "--out", "run")
    done = proxmo("train", "--resume", "run", "--set", "rollout.engine_url=http://two:8000")
    assert (done.code, trainer.config.rollout.engine_url) == (0, "http://two:8000")


def test_a_resumed_run_cannot_become_another_one(proxmo, trainer):
    proxmo("train", "--out", "run")
    done = proxmo("train", "--resume", "run", "--seed", "9", "--set", "optim.lr=0.5")
    assert done.code == 2
    assert "started with another optim.lr, seed" in done.error_line


def test_resuming_what_is_no_run_is_an_error(proxmo, trainer, tmp_path: Path):
    assert "absent is not a run directory" in proxmo("train", "--resume", "absent").error_line
    proxmo("train", "--out", "run")
    done = proxmo("train", "--resume", "run", "--out", "other")
    assert (done.code, "leave --out other out" in done.error_line) == (2, True)


def test_a_wrong_key_is_found_before_the_trainer_is_loaded(proxmo, trainer):
    done = proxmo("train", "--set", "optim.lrr=1")
    assert (done.code, trainer.config) == (2, None)
    assert done.error_line == (
        "error: unknown configuration key 'optim.lrr'; did you mean optim.lr?"
    )
