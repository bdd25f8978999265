"""`proxmo doctor`: what is installed, and whether the parts that a run needs really work here."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import click

from . import options
from .display import show, show_json
from .failures import DONE, FAILED

if TYPE_CHECKING:
    from proxmo_envs import TaskSet

_SPLITS = ("train", "valid_seen", "valid_unseen")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: what was found, or what to do about it."""

    name: str
    ok: bool
    text: str


@click.command("doctor")
@options.data("Also look for ALFWorld games there.")
@options.as_json("Print the findings as JSON.")
@options.debug
def command(data: str | None, as_json: bool) -> int:
    """Check what is installed and whether it works; exit code 1 when something is missing."""
    findings = [_python(), *_packages(), _faiss(), _torch(), _environment(None)]
    if data is not None:
        findings.append(_environment(data))
    if as_json:
        show_json(findings)
    else:
        _print(findings)
    return DONE if all(finding.ok for finding in findings) else FAILED


def _python() -> Finding:
    text = f"{platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores"
    return Finding("python", True, text)


def _packages() -> list[Finding]:
    names = ("proxmo", "numpy", "gymnasium", "transformers", "tokenizers", "safetensors")
    return [_checked(name, partial(importlib.metadata.version, name)) for name in names]


def _faiss() -> Finding:
    def look() -> str:
        try:
            faiss = importlib.import_module("faiss")
        except ImportError as error:
            raise RuntimeError(
                'missing; pip install "proxmo[cpu]" (or "proxmo[gpu]" beside a CUDA driver)'
            ) from error
        return f"{faiss.__version__}, {faiss.get_compile_options().strip()}"

    return _checked("faiss", look)


def _torch() -> Finding:
    def look() -> str:
        import torch

        text = f"{torch.__version__}, {torch.get_num_threads()} threads"
        text += f", OMP_WAIT_POLICY={os.environ.get('OMP_WAIT_POLICY')}"
        if not torch.cuda.is_available():
            return f"{text}, no GPU"
        gpu = torch.cuda.get_device_properties(0)
        return f"{text}, {torch.cuda.device_count()} x {gpu.name}, {gpu.total_memory >> 30} GiB"

    return _checked("torch", look)


def _environment(data: str | None) -> Finding:
    """Start one game, from `data` or a generated one."""

    def look() -> str:
        import gymnasium

        tasks = _tasks(data)
        env = gymnasium.make("ALFWorld-v0", data=data, split=tasks.split)
        _, info = env.reset(seed=0)
        env.close()
        return f"{len(tasks)} tasks in split {tasks.split}, started {info['task_id']}"

    return _checked("ALFWorld-v0" if data is None else f"data {data}", look)


def _tasks(data: str | None) -> TaskSet:
    """The tasks of the first split that the data holds: a file for evaluation has no other."""
    import proxmo_envs

    *earlier, last = _SPLITS
    for split in earlier:
        with suppress(proxmo_envs.InvalidOptionError):
            return proxmo_envs.task_set("ALFWorld-v0", split, data)
    return proxmo_envs.task_set("ALFWorld-v0", last, data)


def _checked(name: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(name, True, look())
    # Whatever goes wrong is the finding; the other checks go on.
    except Exception as error:
        return Finding(name, False, " ".join(f"{error}".split()) or type(error).__name__)


def _print(findings: list[Finding]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column()
    table.add_column(overflow="fold")
    for finding in findings:
        mark = Text("ok", style="green") if finding.ok else Text("problem", style="bold red")
        table.add_row(Text(finding.name), mark, Text(finding.text))
    show(table)
