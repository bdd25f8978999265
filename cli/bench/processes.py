"""Separate processes, other interpreters, and the memory of a process, for the benchmarks."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec, TypeVar

from proxmo.errors import UsageError

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def isolated(
    function: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs
) -> _Result:
    """Call a function in a new process, so that its memory can be measured."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *args, **kwargs).result()


def run_script(python: str, script: str | None, job: str, *, task: str, needs: str) -> list[str]:
    """Run one of our scripts with another interpreter and return the lines it prints.

    Args:
        python: the interpreter.
        script: file of the script, which imports nothing of ours.
        job: what the script reads from its standard input.
        task: what the script does, for the error.
        needs: what to install for it, for the error.

    Raises:
        UsageError: the interpreter does not start, or the script fails.
    """
    command = [python, str(script)]
    try:
        done = subprocess.run(command, input=job, capture_output=True, text=True, check=True)
    except OSError as cause:
        raise UsageError(f"{python!r} cannot be started: {cause.strerror}") from cause
    except subprocess.CalledProcessError as cause:
        last = (cause.stderr.strip().splitlines() or ["it gave no reason"])[-1]
        raise UsageError(f"{python!r} cannot {task}: {last}; it needs {needs}") from cause
    return done.stdout.splitlines()


def peak_mb() -> float:
    """Return the most memory this process has had in MB; 0 where the system does not say.

    `getrusage` does not say: its peak includes that of the parent process.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0.0
    return int(status.partition("VmHWM:")[2].split()[0]) / 1000


def resident_bytes(pid: int | str = "self", *, children: bool = False) -> int:
    """Return the memory of a process; 0 where the system does not say, or the process has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text() if children else ""
    except OSError:
        return 0
    own = pages * os.sysconf("SC_PAGE_SIZE")
    return own + sum(resident_bytes(child, children=True) for child in found.split())
