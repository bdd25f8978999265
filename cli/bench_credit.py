"""`proxmo bench credit`: speed and memory of credit assignment."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from .display import progress, show
from .failures import DONE
from .options import debug as debug_option
from .sizes import Sizes

if TYPE_CHECKING:
    from rich.table import Table

    from proxmo.credit.bench import Scale, Timing


@click.command("credit")
@click.option("--groups", type=click.IntRange(min=1), default=16, metavar="N", help="Tasks  [16]")
@click.option(
    "--episodes", type=click.IntRange(min=1), default=8, metavar="N", help="Episodes a task  [8]"
)
@click.option(
    "--steps", type=click.IntRange(min=1), default=50, metavar="N", help="Steps an episode  [50]"
)
@click.option(
    "--repeats", type=click.IntRange(min=1), default=5, metavar="N", help="Runs of each  [5]"
)
@click.option(
    "--sizes",
    type=Sizes(),
    default="1000,10000,100000",
    metavar="N,...",
    help='Distinct states compared across the batch, "" for none  [1000,10000,100000]',
)
@click.option(
    "--top-k", type=click.IntRange(min=1), default=64, metavar="K", help="Their neighbours  [64]"
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@debug_option
def command(
    groups: int,
    episodes: int,
    steps: int,
    repeats: int,
    sizes: tuple[int, ...],
    top_k: int,
    as_json: bool,
) -> int:
    """Measure credit assignment beside a plain dense version, and its growth with the states.

    The first table has medians of runs made in turn, on observations of 40 words of which half are
    distinct. The second compares every state with the whole batch, each size in its own process.
    """
    import numpy as np

    from proxmo.credit.bench import measure_scale, synthetic_batch, time_methods

    with progress("proxmo bench credit", keep=False) as listener:
        listener.phase("methods", text=f"{groups * episodes * steps} steps")
        batch = synthetic_batch(
            np.random.default_rng(0), groups=groups, episodes=episodes, steps=steps
        )
        timings = time_methods(batch, repeats=repeats)
        scales = []
        for size in sizes:
            listener.phase("growth", text=f"{size} states")
            scales.append(measure_scale(size, top_k=top_k))
    if as_json:
        rows = {"methods": [*map(asdict, timings)], "growth": [*map(asdict, scales)]}
        click.echo(json.dumps(rows, indent=2))
        return DONE
    plain = not sys.stdout.isatty()
    show(_methods_table(timings, plain=plain))
    if scales:
        show(_growth_table(scales, plain=plain))
    return DONE


def _methods_table(timings: Sequence[Timing], *, plain: bool) -> Table:
    table = _table(("method", "steps", "time", "plain dense", "ratio"), plain=plain)
    for one in timings:
        dense = "" if one.plain_seconds is None else _time(one.plain_seconds)
        ratio = "" if one.ratio is None else f"{one.ratio:.1f}"
        table.add_row(one.method, f"{one.rows}", _time(one.seconds), dense, ratio)
    return table


def _growth_table(scales: Sequence[Scale], *, plain: bool) -> Table:
    headings = ("states", "neighbours", "time", "peak memory", "all pairs would take", "recall")
    table = _table(headings, plain=plain)
    for one in scales:
        table.add_row(
            f"{one.rows}",
            f"{one.top_k}",
            _time(one.seconds),
            f"{one.peak_mb:.0f} MB",
            f"{one.dense_mb:.0f} MB",
            f"{one.recall:.3f}",
        )
    return table


def _table(headings: Sequence[str], *, plain: bool) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=None if plain else box.ROUNDED, pad_edge=not plain)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left")
    return table


def _time(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
