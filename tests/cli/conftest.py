"""A trainer that needs no torch, and a way to run the command line inside the test process."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proxmo.config import Config
from proxmo.config_loading import dump_toml
from proxmo.evaluation.summary import Evaluation, SeedSpread, TypeResult
from proxmo_cli.main import run


@dataclass
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def error_line(self) -> str:
        """The only thing on stderr."""
        (line,) = self.err.splitlines()
        return line


@pytest.fixture
def proxmo(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Outcome]:
    """Runs the command line in an empty working directory."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Outcome:
        capsys.readouterr()
        code = run([str(one) for one in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


def start(*arguments: object, **settings: Any) -> subprocess.Popen[str]:
    """Starts the command line in a process of its own; its output goes to pipes."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, "-m", "proxmo_cli", *map(str, arguments)]
    return subprocess.Popen(command, **{**pipes, **settings})


def finish(process: subprocess.Popen[str], seconds: float = 300) -> Outcome:
    """Waits for the end of a process."""
    out, err = process.communicate(timeout=seconds)
    return Outcome(process.returncode, out, err)


@dataclass
class Script:
    """What the fake trainer does and what it was asked for."""

    during_construction: Callable[[], Any] = lambda: None
    during_run: Callable[[Any], Any] = lambda trainer: None
    iterations_done: int | None = None
    saves: bool = True
    config: Config | None = None
    arguments: dict[str, Any] = field(default_factory=dict)


@pytest.fixture
def trainer(monkeypatch: pytest.MonkeyPatch) -> Script:
    """Puts a fake in the place of proxmo.training.loop; the script says how it behaves."""
    script = Script()

    class Trainer:
        def __init__(self, config: Config, **arguments: Any) -> None:
            script.during_construction()
            script.config, script.arguments = config, arguments
            self.stop_requested = False
            arguments["out"].mkdir(parents=True, exist_ok=True)
            (arguments["out"] / "config.toml").write_text(dump_toml(config))
            if script.saves:
                (arguments["out"] / "checkpoints" / "step_1").mkdir(parents=True, exist_ok=True)

        def request_stop(self) -> None:
            self.stop_requested = True

        def run(self) -> SimpleNamespace:
            script.during_run(self)
            out, config = script.arguments["out"], script.config
            assert config is not None
            done = config.optim.iterations
            done = done if script.iterations_done is None else script.iterations_done
            listener = script.arguments["listener"]
            listener.iteration({"train/success_rate": 0.5}, done, config.optim.iterations)
            return SimpleNamespace(
                path=out,
                iterations_done=done,
                finished=done >= config.optim.iterations,
                checkpoint=out / "checkpoints" / f"step_{done}",
                metrics={"train/success_rate": 0.5},
                before=evaluation(0.4),
                after=evaluation(0.8),
            )

    monkeypatch.setitem(sys.modules, "proxmo.training.loop", SimpleNamespace(Trainer=Trainer))
    return script


def evaluation(rate: float, errors: int = 0, episodes: int = 10) -> Evaluation:
    """An evaluation as the library returns it; its intervals are made up."""
    return Evaluation(
        env_id="ALFWorld-v0",
        split="valid_unseen",
        panel="alfworld-valid-unseen",
        panel_hash="0123abcd",
        tasks=10,
        planned=episodes + errors,
        episodes=episodes,
        wins=round(rate * episodes),
        errors=errors,
        success_rate=rate,
        low=rate / 2,
        high=(1 + rate) / 2,
        mean_score=rate,
        mean_length=11.5,
        invalid_action_share=0.031,
        prompt_tokens=47_120,
        response_tokens=900,
        cost=1.25,
        by_task_type={
            "heat": TypeResult(4, 1, 0.25, 0.125, 0.625),
            "cool": TypeResult(4, 3, 0.75, 0.375, 0.875),
        },
        error_causes={"TimeoutError: no answer": errors} if errors else {},
        seeds=SeedSpread({"0": 0.25, "7": 0.75}, mean=0.5, sd=0.354, low=0.0, high=1.0),
        pass_at={"1": 0.5, "3": 0.875},
        success_after={"1": 0.25, "2": 0.5},
    )


@pytest.fixture
def type_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Pipes lines into the next command."""
    return lambda lines: monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
