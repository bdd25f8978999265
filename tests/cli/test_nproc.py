"""`proxmo train --nproc N`: N processes are one run to whoever starts and stops it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from proxmo.config_loading import dump_toml
from tests.cli.conftest import finish, start
from tests.fakes import counter_config, save_tiny_model


def test_processes_are_not_started_twice(proxmo, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    done = proxmo("train", "--nproc", "2", "--out", "run")
    assert done.code == 2
    assert "--nproc 2 starts processes, but a launcher such as torchrun" in done.error_line


@pytest.fixture
def train(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The options of a small run, in the repository, where the world of the fakes is found."""
    save_tiny_model(tmp_path / "model")
    (tmp_path / "config.toml").write_text(dump_toml(counter_config(tmp_path / "model")))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.chdir(repository)
    return "train", "--preset", str(tmp_path / "config.toml"), "--json"


@pytest.mark.slow
def test_ctrl_c_stops_all_processes_after_the_step_and_the_run_goes_on_with_one(
    train, tmp_path: Path
):
    run = tmp_path / "run"
    together = start(*train, "--nproc", "2", "--out", run, "--iterations", "999")
    deadline = time.monotonic() + 300
    while not (run / "metrics.jsonl").exists() and together.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    together.send_signal(signal.SIGINT)
    ended = finish(together)
    assert ended.code == 3, ended.err
    stopped = json.loads(ended.out)
    done = stopped["iterations_done"]
    assert 0 < done < 999 and not stopped["finished"]
    assert ended.err.count("stopping after this step") == 1
    alone = finish(start("train", "--resume", run, "--json", "--iterations", done + 1))
    assert alone.code == 0, alone.err
    assert json.loads(alone.out)["iterations_done"] == done + 1


@pytest.mark.slow
def test_torchrun_starts_the_same_run(train, tmp_path: Path):
    launcher = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m")
    more = ("--iterations", "1", "--set", "model.parallel=fsdp", "--out", str(tmp_path / "run"))
    command = [sys.executable, "-m", *launcher, "proxmo_cli", *train, *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["iterations_done"] == 1
