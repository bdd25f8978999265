"""The command line answers at once, helps everywhere, and turns every error into one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import pytest

from proxmo.errors import CheckpointError, ConfigError, ProxmoError
from proxmo_cli.main import run
from proxmo_envs.errors import GameFileError, InvalidOptionError

HEAVY = ("torch", "transformers", "gymnasium", "numpy", "rich", "faiss")


def python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        (["--help"], []),
        (["train", "-h"], []),
        # The registry of Gymnasium knows the step limit.
        (["train", "--dry-run"], ["gymnasium", "numpy"]),
    ],
)
def test_help_and_dry_run_import_nothing_heavy(arguments: list[str], allowed: list[str]):
    code = (
        "import sys, json\n"
        "from proxmo_cli.main import run\n"
        f"assert run({arguments!r}) == 0\n"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    )
    assert json.loads(python(code).splitlines()[-1]) == allowed


def test_help_takes_less_than_half_a_second():
    def seconds() -> float:
        started = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "proxmo_cli", "--help"], check=True, capture_output=True
        )
        return time.perf_counter() - started

    # The best of some: other work on the machine only ever adds.
    assert min(seconds() for _ in range(4)) < 0.5


@pytest.mark.parametrize("start", ["runpy.run_module('proxmo_cli', run_name='__main__')", "main()"])
def test_ctrl_c_while_the_command_line_is_imported_says_one_line(start: str):
    code = (
        "import runpy, sys\n"
        "from proxmo_cli.__main__ import main\n"
        "class CtrlC:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'click': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, CtrlC())\n"
        f"{start}\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "interrupted\n")


def test_threads_that_wait_sleep_unless_the_user_says_otherwise(monkeypatch: pytest.MonkeyPatch):
    code = (
        "import os, sys\n"
        "from proxmo_cli.main import main\n"
        "sys.argv = ['proxmo', '--version']\n"
        "try: main()\n"
        "except SystemExit: print(os.environ['OMP_WAIT_POLICY'])"
    )
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    assert python(code).splitlines()[-1] == "PASSIVE"
    assert python(code, OMP_WAIT_POLICY="ACTIVE").splitlines()[-1] == "ACTIVE"


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_explains_itself(proxmo, flag: str):
    listed = proxmo()
    assert listed.code == 0
    for command in ("train", "eval", "doctor"):
        done = proxmo(command, flag)
        assert command in listed.out and done.code == 0
        assert done.out.startswith(f"Usage: proxmo {command}")


def test_the_version_is_that_of_the_package(proxmo):
    assert proxmo("--version").out == "proxmo 0.1.0\n"


def unknown_environment() -> None:
    import proxmo_envs  # noqa: F401  registers the ids

    gymnasium.make("ALFWorl-v0")


def raising(error: Exception):
    def act() -> None:
        raise error

    return act


@pytest.mark.parametrize(
    ("act", "code", "part"),
    [
        (raising(ConfigError("a is 1,\nexpected 2")), 2, "error: a is 1, expected 2"),
        (raising(ProxmoError("it failed")), 1, "error: it failed"),
        (raising(CheckpointError("disk full")), 1, "error: disk full"),
        (raising(InvalidOptionError("split is 'x'")), 2, "error: split is 'x'"),
        (raising(GameFileError("no game")), 1, "error: no game"),
        (raising(OSError(28, "No space left on device")), 1, "No space left on device"),
        (unknown_environment, 2, "ALFWorld"),
        (raising(gymnasium.error.DependencyNotInstalled("pygame")), 1, "error: pygame"),
    ],
)
def test_an_error_of_a_library_is_one_line(proxmo, trainer, act, code: int, part: str):
    trainer.during_construction = act
    done = proxmo("train")
    assert (done.code, part in done.err) == (code, True)
    assert "Traceback" not in done.err
    assert len([line for line in done.err.splitlines() if line.startswith("error: ")]) == 1


def test_a_bug_is_one_line_that_names_the_file_with_the_traceback(proxmo, trainer):
    trainer.during_construction = raising(ZeroDivisionError("a bug"))
    done = proxmo("train")
    line = done.err.splitlines()[-1]
    assert done.code == 1
    assert line.startswith("error: unexpected ZeroDivisionError: a bug")
    file = Path(line.partition("the traceback is in ")[2].rstrip(")"))
    assert "in act" in file.read_text()
    file.unlink()


def test_debug_shows_the_traceback(proxmo, trainer):
    trainer.during_construction = raising(ConfigError("wrong"))
    with pytest.raises(ConfigError):
        run(["train", "--debug"])
    assert run(["train", "-h"]) == 0


def test_an_interrupt_before_anything_happened_is_exit_code_3(proxmo, trainer):
    def interrupt() -> None:
        raise KeyboardInterrupt

    trainer.during_construction = interrupt
    done = proxmo("train")
    assert done.code == 3
    assert done.err.splitlines()[-1] == "interrupted"
