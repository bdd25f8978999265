"""`proxmo train --nproc N`: N processes are one run to whoever starts and stops it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from proxmo.config_loading import dump_toml
from tests.fakes import counter_config, save_tiny_model


def test_processes_are_not_started_twice(proxmo, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    done = proxmo("train", "--nproc", "2", "--out", "run")
    assert done.code == 2
    assert "--nproc 2 starts processes, but a launcher such as torchrun" in done.error_line


def test_a_certain_gpu_is_none_for_several_processes(proxmo):
    done = proxmo("train", "--nproc", "2", "--device", "cuda:1", "--out", "run")
    assert done.code == 2
    assert "2 processes take one GPU each" in done.error_line


def test_less_than_one_process_is_refused(proxmo):
    assert proxmo("train", "--nproc", "0").code == 2


@pytest.fixture
def start(tmp_path: Path, repository: Path):
    """Starts a command line of Python in the repository, where the world of the fakes is found."""
    save_tiny_model(tmp_path / "model")
    (tmp_path / "config.toml").write_text(dump_toml(counter_config(tmp_path / "model")))

    def call(*arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=repository,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    return call


@pytest.mark.slow
def test_ctrl_c_stops_all_processes_after_the_step_and_the_run_goes_on_with_one(
    start, tmp_path: Path
):
    run = tmp_path / "run"
    train = ("train", "--preset", str(tmp_path / "config.toml"), "--json")
    together = start("proxmo_cli", *train, "--nproc", "2", "--out", str(run), "--iterations", "999")
    deadline = time.monotonic() + 300
    while not (run / "metrics.jsonl").exists() and together.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    together.send_signal(signal.SIGINT)
    out, err = together.communicate(timeout=120)
    assert together.returncode == 3, err
    stopped = json.loads(out)
    done = stopped["iterations_done"]
    assert 0 < done < 999 and not stopped["finished"]
    assert err.count("stopping after this step") == 1
    alone = start(
        "proxmo_cli", "train", "--resume", str(run), "--json", "--iterations", str(done + 1)
    )
    out, err = alone.communicate(timeout=300)
    assert alone.returncode == 0, err
    assert json.loads(out)["iterations_done"] == done + 1


@pytest.mark.slow
def test_torchrun_starts_the_same_run(start, tmp_path: Path):
    train = ("train", "--preset", str(tmp_path / "config.toml"), "--json", "--iterations", "1")
    together = start(
        *("torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "proxmo_cli"),
        *(*train, "--set", "model.parallel=fsdp", "--out", str(tmp_path / "run")),
    )
    out, err = together.communicate(timeout=400)
    assert together.returncode == 0, err
    assert json.loads(out)["iterations_done"] == 1
