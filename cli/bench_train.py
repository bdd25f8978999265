"""`proxmo bench train`: our training loop beside TRL's, its rollout, its memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from statistics import median
from typing import TYPE_CHECKING, Any

import click

from proxmo.config_loading import resolve

from .display import progress, show
from .options import debug as debug_option

if TYPE_CHECKING:
    from rich.table import Table

    from proxmo.config import Config
    from proxmo.training.bench import Beside, Efficiency, Growth


@click.command("train")
@click.option("--model", metavar="M", default="tiny", help="Directory or hub id  [tiny]")
@click.option("--trl", metavar="PYTHON", help="Interpreter that has TRL, to measure it, too.")
@click.option(
    "--tasks", type=click.IntRange(min=2), default=8, metavar="N", help="Tasks per iteration  [8]"
)
@click.option(
    "--group-size", type=click.IntRange(min=2), default=8, metavar="N", help="Episodes each  [8]"
)
@click.option(
    "--iterations",
    type=click.IntRange(min=2),
    default=8,
    metavar="N",
    help="Iterations timed, the first of them a warm-up  [8]",
)
@click.option(
    "--repeats", type=click.IntRange(min=1), default=3, metavar="N", help="Runs of each  [3]"
)
@click.option(
    "--memory",
    type=click.IntRange(min=2),
    metavar="N",
    help="Watch the memory over N iterations, too.",
)
@click.option(
    "--set", "assignments", multiple=True, metavar="A.B=C", help="Set any key of the configuration."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@debug_option
def command(
    model: str,
    trl: str | None,
    tasks: int,
    group_size: int,
    iterations: int,
    repeats: int,
    memory: int | None,
    assignments: tuple[str, ...],
    as_json: bool,
) -> None:
    """Measure useful tokens per second of training, beside TRL's GRPOTrainer.

    Both train the same model on the same prompts, batches and limits, on the CPU, in turn; seconds
    are CPU time. Then one iteration's episodes are played by our loop and by one that generates for
    every episode until the slowest has ended.
    """
    flags: dict[str, Any] = {
        "model.name": model,
        "model.device": "cpu",
        "rollout.tasks": tasks,
        "rollout.group_size": group_size,
        "optim.iterations": iterations,
    }
    config = resolve([], flags, assignments)
    with progress("proxmo bench train", keep=False) as says:
        says.phase("loading libraries")
        from proxmo.training import bench

        config = _with_directory(config, says)
        speed = bench.beside_trl(config, trl, repeats=repeats, listener=says)
        loops = bench.rollout_efficiency(config, says)
        growth = None if memory is None else bench.memory_growth(config, memory)
    if as_json:
        result = {
            "speed": asdict(speed),
            "rollout": [*map(asdict, loops)],
            "memory": growth and asdict(growth),
        }
        click.echo(json.dumps(result, indent=2))
        return
    show(_speeds(speed))
    show(_loops(loops))
    if growth is not None:
        show(_growth(growth))


def _with_directory(config: Config, says: Any) -> Config:
    """The configuration with the embedded model's directory in the place of its name."""
    from proxmo.training.models import EMBEDDED
    from proxmo.training.tiny import TinyConfig, tiny_model_path

    if config.model.name != EMBEDDED:
        return config
    path = tiny_model_path(config.env, config.prompt, TinyConfig(), says.phase)
    return replace(config, model=replace(config.model, name=str(path)))


def _speeds(speed: Beside) -> Table:
    table = _table("training", "useful tokens", "CPU s", "wall s", "tokens per CPU s", "ratio")
    for one in (speed.ours, speed.theirs):
        if one is not None:
            ratio = f"{median(speed.ratios):.2f}" if one is speed.ours and speed.ratios else ""
            table.add_row(
                one.trainer,
                f"{one.tokens:,}",
                f"{one.cpu_seconds:.1f}",
                f"{one.seconds:.1f}",
                f"{one.rate:,.0f}",
                ratio,
            )
    return table


def _loops(loops: Sequence[Efficiency]) -> Table:
    table = _table("rollout", "episodes", "generated", "useful", "efficiency", "CPU s")
    for one in loops:
        table.add_row(
            one.loop,
            f"{one.episodes:,}",
            f"{one.generated:,}",
            f"{one.useful:,}",
            f"{one.useful / one.generated:.2f}",
            f"{one.cpu_seconds:.1f}",
        )
    return table


def _growth(growth: Growth) -> str:
    return (
        f"memory: {growth.before / 1e6:.1f} MB after the warm-up, {growth.after / 1e6:.1f} MB "
        f"{growth.iterations} iterations later, {growth.slope / 1e3:+.1f} kB an iteration"
    )


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    plain = not sys.stdout.isatty()
    table = Table(box=None if plain else box.ROUNDED, pad_edge=not plain)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    return table
