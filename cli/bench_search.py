"""`proxmo bench search`: cost of the shop's index, and speed of a search beside a plain one."""

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

    from webshop_server.search.bench import Measurement


@click.command("search")
@click.option(
    "--sizes",
    type=Sizes(),
    default="1000,100000",
    metavar="N,...",
    help="Documents  [1000,100000]; 1100000 takes a few minutes and 3 GB",
)
@click.option(
    "--queries", type=click.IntRange(min=1), default=200, metavar="N", help="Searches  [200]"
)
@click.option("--seed", type=click.IntRange(min=0), default=0, metavar="N", help="Seed  [0]")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@debug_option
def command(sizes: tuple[int, ...], queries: int, seed: int, as_json: bool) -> int:
    """Measure the search of the shop on documents of made-up words.

    Each size runs in its own process. The plain way scores every document that has a word of the
    query; both ways answer the same queries in turn and must agree.
    """
    from webshop_server.search.bench import measure

    found = []
    with progress("proxmo bench search", keep=False) as listener:
        for size in sizes:
            listener.phase("search", text=f"{size} documents")
            found.append(measure(size, queries=queries, seed=seed))
    if as_json:
        click.echo(json.dumps([asdict(one) for one in found], indent=2))
    else:
        show(_table(found, plain=not sys.stdout.isatty()))
    return DONE


def _table(found: Sequence[Measurement], *, plain: bool) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=None if plain else box.ROUNDED, pad_edge=not plain)
    for heading in (
        *("documents", "build", "peak memory", "on disk", "open"),
        *("search p50", "p99", "plain p50", "p99", "ratio", "same"),
    ):
        table.add_column(heading, justify="right")
    for one in found:
        table.add_row(
            f"{one.documents}",
            f"{one.build_seconds:.1f} s",
            f"{one.peak_mb:.0f} MB",
            f"{one.disk_mb:.1f} MB",
            *(f"{ms:.2f} ms" for ms in (one.open_ms, one.p50_ms, one.p99_ms)),
            *(f"{ms:.2f} ms" for ms in (one.plain_p50_ms, one.plain_p99_ms)),
            f"{one.plain_p50_ms / one.p50_ms:.1f}",
            f"{one.same:.0%}",
        )
    return table
