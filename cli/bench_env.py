"""`proxmo bench env`: speed and memory of an environment, beside its original."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .display import progress, show
from .failures import debug_option

if TYPE_CHECKING:
    from rich.table import Table

    from proxmo_envs.bench import Beside, Speed


@click.command("env")
@click.option("--env", default="ALFWorld-v0", metavar="ID", help="Environment  [ALFWorld-v0]")
@click.option("--data", metavar="PATH", help="Measure these tasks, too.")
@click.option(
    "--steps", type=click.IntRange(min=100), default=20_000, metavar="N", help="Steps  [20000]"
)
@click.option(
    "--games",
    type=click.IntRange(min=0),
    default=10_000,
    metavar="N",
    help="Games over which the memory is watched, 0 for none  [10000]",
)
@click.option(
    "--original", metavar="PYTHON", help="Interpreter that has the original, to measure it, too."
)
@click.option(
    "--tasks",
    type=click.IntRange(min=1),
    default=6,
    metavar="N",
    help="Tasks played with the original  [6]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@debug_option
def command(
    env: str,
    data: str | None,
    steps: int,
    games: int,
    original: str | None,
    tasks: int,
    as_json: bool,
) -> None:
    """Measure steps, resets and memory of an environment, by its size and beside its original.

    Rates are a second of CPU time of one process, list of admissible actions included. The memory
    is watched at the last size, or with --data.
    """
    from proxmo.errors import UsageError
    from proxmo_envs.bench import measure, subject

    parts = subject(env)
    if original is not None and parts.beside is None:
        raise UsageError(f"--original: there is no original to measure for {env}")
    if original is not None and (data is None or not Path(data).is_dir()):
        raise UsageError("--original needs --data DIR, an official data directory that it can play")
    with tempfile.TemporaryDirectory() as name, progress("proxmo bench env", keep=False) as says:
        folder = Path(name)
        says.phase("sizes")
        sizes = dict(parts.sizes(folder))
        if data is not None:
            sizes["data"] = {"data": data}
        speeds = []
        for size, kwargs in sizes.items():
            says.phase("measure", text=size)
            last = size == [*sizes][-1]
            speeds.append(measure(env, size, kwargs, steps=steps, games=games if last else 0))
        both = None
        if original is not None and data is not None and parts.beside is not None:
            says.phase("original", text=f"{tasks} tasks")
            both = parts.beside(Path(data), original, tasks)
    if as_json:
        result = {"env": env, "sizes": [*map(asdict, speeds)], "beside": both and asdict(both)}
        click.echo(json.dumps(result, indent=2))
        return
    show(_speeds(speeds))
    for speed in speeds:
        if speed.growth_bytes is not None:
            grown = f"{speed.growth_bytes / 1e6:.1f} MB"
            show(f"memory grew by {grown} over {speed.games:,} games ({speed.size})")
    if both is not None:
        show(_beside(both))


def _speeds(speeds: Sequence[Speed]) -> Table:
    table = _table("size", "actions", "steps/s", "steps/s, made", "resets/s", "kB a game")
    for one in speeds:
        rates = (one.steps_per_second, one.made_steps_per_second, one.resets_per_second)
        table.add_row(
            one.size,
            f"{one.actions:.0f}",
            *(f"{rate:,.0f}" for rate in rates),
            f"{one.live_bytes / 1e3:.0f}",
        )
    return table


def _beside(both: Beside) -> Table:
    table = _table(f"{both.tasks} tasks, {both.steps} steps", "ours", "original", "ratio")
    for name, ours, theirs in (
        ("steps/s", both.ours_steps, both.original_steps),
        ("resets/s", both.ours_resets, both.original_resets),
    ):
        table.add_row(name, f"{ours:,.0f}", f"{theirs:,.2f}", f"{ours / theirs:,.0f}")
    table.add_row("MB of the process", "", f"{both.original_bytes / 1e6:.0f}", "")
    return table


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    plain = not sys.stdout.isatty()
    table = Table(box=None if plain else box.ROUNDED, pad_edge=not plain)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    return table
