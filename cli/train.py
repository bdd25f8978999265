"""`proxmo train`: resolve the configuration, run the trainer, print its result."""

from __future__ import annotations

import os
import shlex
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from signal import SIGINT
from typing import TYPE_CHECKING, Any

import click

from proxmo.config import Config
from proxmo.config_loading import differing_keys, dump_toml, load_toml, resolve
from proxmo.errors import UsageError
from proxmo.listener import Listener

from . import options
from .display import progress, show, show_json
from .failures import DONE, INCOMPLETE
from .stopping import STOPPING, graceful_stop

if TYPE_CHECKING:
    from proxmo.training.loop import Run

# Keys that may change when a run is resumed: its length, what fits the machine, measurements and
# checkpoints. Keys that change what is learnt, and how, may not.
_CHANGEABLE = (
    "optim.iterations",
    "optim.micro_batch_tokens",
    "rollout.engine_url",
    "rollout.episode_timeout_s",
    "rollout.gpu_memory",
    "rollout.max_live",
    "model.device",
    "model.gradient_checkpointing",
    "model.parallel",
    "eval.",
    "checkpoint.",
)


@click.command("train")
@options.env("Gymnasium id of the environment  [ALFWorld-v0]")
@options.text(
    "--model",
    "Directory or Hugging Face id of a causal language model; tiny: the embedded one  [tiny]",
    metavar="M",
)
@options.text("--method", "Credit assignment: proxmo, gigpo, grpo, ...  [proxmo]", metavar="NAME")
@options.presets("Preset by name or TOML file; several are layered, later ones win.")
@options.data()
@options.assignments("Set any key of the configuration, for example optim.lr=1e-5.")
@options.path(
    "--out",
    "Run directory, new or empty  [runs/<env>-<method>-<seed>-<time>]",
    metavar="RUN",
)
@options.path("--resume", "Continue the run in RUN.", metavar="RUN")
@options.count("--iterations", "Training iterations.", minimum=None)
@options.number("--minutes", "Save and stop after so many minutes.", above=0, metavar="M")
@options.seed("Seed of every random draw  [0]", minimum=None)
@options.device()
@options.count(
    "--nproc",
    "Processes that share the work, each with a GPU if there are any",
    1,
    name="processes",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the resolved configuration and what it needs (memory, tokens), touch nothing.",
)
@options.as_json()
@options.debug
def command(
    presets: tuple[str, ...],
    assignments: tuple[str, ...],
    out: Path | None,
    resume: Path | None,
    minutes: float | None,
    processes: int,
    dry_run: bool,
    as_json: bool,
    **flags: Any,
) -> int:
    """Train an agent by reinforcement learning.

    Without --model, a tiny language model is built, warm-started and trained: minutes on a CPU.
    With --model the defaults are those of the paper (arXiv 2602.19225). Ctrl-C finishes the step,
    saves and prints the command that continues.
    """
    keys = options.take_keys(flags)
    config = (
        resolve(presets, keys, assignments)
        if resume is None
        else _resumed(resume, presets, keys, assignments)
    )
    if resume is not None and out is not None and out.resolve() != resume.resolve():
        raise UsageError(f"--resume {resume} continues in that directory; leave --out {out} out")
    if dry_run:
        _print_plan(config, processes)
        return DONE
    path = _run_directory(config, out) if resume is None else resume
    leads = os.environ.get("RANK", "0") == "0"  # of those that torchrun has started
    work = _train if processes == 1 else partial(_train_together, processes)
    try:
        run, stopped = work(config, path, resume=resume is not None, minutes=minutes)
    except BaseException:
        if leads and any((path / "checkpoints").glob("step_*")):
            click.echo(f"what was saved is intact; continue: {_resume_command(path)}", err=True)
        raise
    if leads:
        _print(run, as_json=as_json)
    # A run that used up its --minutes did as requested; one that was stopped by Ctrl-C did not.
    return INCOMPLETE if stopped and not run.finished else DONE


def _print_plan(config: Config, processes: int) -> None:
    """Print the configuration and its needs as comments; raise for one that cannot run."""
    named = differing_keys(resolve(), config)
    # Defaults need no check, which would make an environment.
    checked = any(key.startswith(("env.", "eval.split", "credit.")) for key in named)
    if checked:
        from proxmo.training.request import check_request

        check_request(config)
    from proxmo.training.plan import plan

    comments = plan(config, play=checked, nproc=processes)
    click.echo(dump_toml(config) + "".join(f"# {line}\n" for line in comments), nl=False)


def _resumed(
    path: Path, presets: tuple[str, ...], keys: dict[str, Any], assignments: tuple[str, ...]
) -> Config:
    """Lay the requested settings over the saved configuration, as far as a run can change."""
    saved_at = path / "config.toml"
    if not saved_at.is_file():
        raise UsageError(f"{path} is not a run directory: it has no config.toml")
    saved = load_toml(saved_at)
    config = resolve(presets, keys, assignments, base=saved)
    changed = [key for key in differing_keys(saved, config) if not key.startswith(_CHANGEABLE)]
    if changed:
        raise UsageError(
            f"the run in {path} was started with another {', '.join(changed)}; "
            "leave that out to continue it, or start a new run with --out"
        )
    return config


def _run_directory(config: Config, out: Path | None) -> Path:
    if out is None:
        return options.default_directory(config, config.credit.method)
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out {out} is a file, expected a new or empty directory")
    if out.is_dir() and any(out.iterdir()):
        proposal = "choose another --out"
        if (out / "config.toml").is_file():
            proposal = f"continue that run with `{_resume_command(out)}` or {proposal}"
        raise UsageError(f"--out {out} is not empty; {proposal}")
    return out


def _train(
    config: Config,
    path: Path,
    *,
    resume: bool,
    minutes: float | None,
    signals: tuple[int, ...] = STOPPING,
) -> tuple[Run, bool]:
    """Run the trainer; return the run and whether a signal asked it to stop."""
    from proxmo.distributed import process_group

    title = f"proxmo · {config.env.id} · {config.model.name} · {config.credit.method}"
    with process_group(config.model.device) as group, ExitStack() as display:
        listener = Listener()
        if group.is_main:
            listener = display.enter_context(progress(title, minutes=minutes))
        listener.phase("loading libraries")
        from proxmo.training.loop import Trainer

        path = group.broadcast(path)  # the default name has the time in it
        trainer = Trainer(
            config, out=path, resume=resume, listener=listener, minutes=minutes, processes=group
        )
        listener.message(f"run directory {path}")
        with graceful_stop(trainer.request_stop, listener.message, signals) as stopped:
            return trainer.run(), stopped()


def _train_together(
    number: int, config: Config, path: Path, *, resume: bool, minutes: float | None
) -> tuple[Run, bool]:
    """Run the trainer in several processes, as torchrun would; return the result of the first."""
    from proxmo.distributed import check_devices
    from proxmo.training.launcher import Processes

    if "WORLD_SIZE" in os.environ:
        raise UsageError(
            f"--nproc {number} starts processes, but a launcher such as torchrun has started this "
            "one; leave --nproc out"
        )
    check_devices(config.model.device, number)
    one = partial(_train, config, path, resume=resume, minutes=minutes, signals=(SIGINT,))
    with (
        Processes(number, one) as processes,
        graceful_stop(processes.request_stop, lambda text: None),
    ):
        run: tuple[Run, bool] = processes.wait()
        return run


def _resume_command(path: Path) -> str:
    return f"proxmo train --resume {shlex.quote(str(path))}"


def _print(run: Run, *, as_json: bool) -> None:
    resume = None if run.finished else _resume_command(run.path)
    if as_json:
        show_json(
            {
                "run": run.path,
                "checkpoint": run.checkpoint,
                "iterations_done": run.iterations_done,
                "finished": run.finished,
                "resume": resume,
                "metrics": dict(run.metrics),
                "before": run.before,
                "after": run.after,
            }
        )
        return
    from proxmo.reporting.tables import training_table

    show(training_table(run))
    if resume:
        click.echo(f"resume with: {resume}")
    click.echo(f"evaluate with: proxmo eval --checkpoint {shlex.quote(str(run.checkpoint))}")
