"""`proxmo doctor`: what is installed, and whether the parts that a run needs really work here."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import click

from . import options
from .display import show_json
from .failures import DONE, FAILED

if TYPE_CHECKING:
    from proxmo_envs import EnvReport, TaskSet


_PACKAGES = ("proxmo", "numpy", "gymnasium", "transformers", "tokenizers", "safetensors")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: what was found, or what to do about it."""

    name: str
    ok: bool
    text: str


@click.command("doctor")
@options.env("Check this environment, as ID or MODULE:ID, against the contract")
@options.data("Also look for ALFWorld games there; with --env, for its tasks.")
@options.as_json("Print the findings as JSON.")
@options.debug
def command(env: str | None, data: str | None, as_json: bool) -> int:
    """Check what is installed and whether it works; exit code 1 when something is missing."""
    checks: dict[str, Callable[[], str | list[Finding]]] = {
        "python": _python,
        **{name: partial(importlib.metadata.version, name) for name in _PACKAGES},
        "faiss": _faiss,
        "torch": _torch,
        **_environments(env, data),
    }
    findings = [one for name, look in checks.items() for one in _checked(name, look)]
    if as_json:
        show_json(findings)
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            mark = ("ok", "green") if finding.ok else ("problem", "red")
            styled = click.style(f"{mark[0]:7}", fg=mark[1])
            click.echo(f"{finding.name:{width}}  {styled}  {finding.text}")
    return DONE if all(finding.ok for finding in findings) else FAILED


def _python() -> str:
    return f"{platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores"


def _faiss() -> str:
    try:
        faiss = importlib.import_module("faiss")
    except ImportError:
        return 'not installed; only the option top_k needs it: pip install "proxmo[cpu]"'
    return f"{faiss.__version__}, {faiss.get_compile_options().strip()}"


def _torch() -> str:
    import torch

    text = f"{torch.__version__}, {torch.get_num_threads()} threads"
    text += f", OMP_WAIT_POLICY={os.environ.get('OMP_WAIT_POLICY')}"
    if not torch.cuda.is_available():
        return f"{text}, no GPU"
    gpu = torch.cuda.get_device_properties(0)
    return f"{text}, {torch.cuda.device_count()} x {gpu.name}, {gpu.total_memory >> 30} GiB"


def _environments(
    env: str | None, data: str | None
) -> dict[str, Callable[[], str | list[Finding]]]:
    """Return the checks of `env`, or else of every described environment and games in `data`."""
    from proxmo_envs.description import descriptions

    if env is not None:
        return {env: partial(_report, env, data)}
    games = {} if data is None else {f"data {data}": partial(_summary, "ALFWorld-v0", data)}
    return {**{one.id: partial(_summary, one.id, None) for one in descriptions()}, **games}


def _summary(env_id: str, data: str | None) -> str:
    """Play a few episodes of the first split that the data holds: a file may have only one."""
    report, tasks = _check(env_id, data)
    return f"{len(tasks)} tasks in split {tasks.split}; {report.success}"


def _report(env_id: str, data: str | None) -> list[Finding]:
    """Say all that the check of one environment found."""
    report, tasks = _check(env_id, data)
    kept = f"keeps the contract; {len(tasks)} tasks in split {tasks.split}"
    findings = [Finding(env_id, True, kept), Finding("success", True, report.success)]
    findings += [Finding("default", True, text) for text in report.defaults]
    for one in report.abilities:
        text = "yes" if one.present else f"no: needs {one.how}; used by {one.needed_for}"
        findings.append(Finding(one.name, True, text))
    return findings


def _check(env_id: str, data: str | None) -> tuple[EnvReport, TaskSet]:
    import proxmo_envs
    from proxmo.config import EnvConfig
    from proxmo.rollout.environments import make_plain_env
    from proxmo_envs.creators import creator_of

    creator_of(env_id)
    *earlier, last = proxmo_envs.description_of(env_id).splits or ("train",)
    tasks = None
    for split in earlier:
        with suppress(proxmo_envs.InvalidOptionError):
            tasks = proxmo_envs.task_set(env_id, split, data)
            break
    tasks = tasks or proxmo_envs.task_set(env_id, last, data)
    with closing(make_plain_env(EnvConfig(id=env_id, data=data, split=tasks.split))) as env:
        return proxmo_envs.check_text_env(env), tasks


def _checked(name: str, look: Callable[[], str | list[Finding]]) -> list[Finding]:
    try:
        found = look()
    # Whatever goes wrong is the finding; the other checks go on.
    except (Exception, SystemExit) as error:
        return [Finding(name, False, " ".join(f"{error}".split()) or type(error).__name__)]
    return [Finding(name, True, found)] if isinstance(found, str) else found
