"""`proxmo bench webshop-http`: many shoppers against a server of the shop."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from .display import progress, show
from .failures import DONE, FAILED
from .options import Number
from .options import debug as debug_option

if TYPE_CHECKING:
    from rich.table import Table

    from webshop_server.app.load import Measurement

# Of the original on the machine and day of the recordings, its best of all ways to serve it.
_ORIGINAL_PER_S = 61


@click.command("webshop-http")
@click.option(
    "--sessions", type=click.IntRange(min=1), default=200, metavar="N", help="Shoppers  [200]"
)
@click.option("--seconds", type=Number(min=1), default=60.0, metavar="S", help="Duration  [60]")
@click.option(
    "--workers", type=click.IntRange(min=1), default=2, metavar="N", help="Processes  [2]"
)
@click.option(
    "--surface",
    type=click.Choice(["pages", "api"]),
    default="pages",
    help="What they use: the pages of people or the API  [pages]",
)
@click.option("--data", metavar="PATH", help="As in `proxmo webshop serve`  [bundled]")
@click.option("--difficulty", default="default", metavar="D", help="Of the bundled data  [default]")
@click.option("--seed", type=click.IntRange(min=0), default=0, metavar="N", help="Seed  [0]")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@debug_option
def command(workers: int, data: str | None, difficulty: str, as_json: bool, **load: Any) -> int:
    """Measure a server of the shop under load: requests a second, times, errors, memory.

    The server is started for it on a free port. The shoppers run in this process and on the same
    machine, and send the next request as soon as the last is answered. Exit code 1: errors.
    """
    from webshop_server.app.load import measure
    from webshop_server.app.serve import Settings

    shop = {"data": data, "difficulty": difficulty}
    settings = Settings(port=0, workers=workers, shop=shop)
    with progress("proxmo bench webshop-http", keep=False) as listener:
        listener.phase("load", text=f"{load['sessions']} shoppers for {load['seconds']:g} s")
        found = measure(settings, **load)
    if as_json:
        click.echo(json.dumps(asdict(found), indent=2))
    else:
        show(_table(found, plain=not sys.stdout.isatty()))
    return FAILED if found.errors else DONE


def _table(found: Measurement, *, plain: bool) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=None if plain else box.ROUNDED, pad_edge=not plain, show_header=False)
    ratio = found.requests_per_s / _ORIGINAL_PER_S
    for name, value in {
        "shoppers, workers": f"{found.sessions}, {found.workers} ({found.surface})",
        "requests": f"{found.requests:,} in {found.seconds:g} s",
        "requests/s": f"{found.requests_per_s:.0f} ({ratio:.1f} times the original's)",
        "p50, p99": f"{found.p50_ms:.0f} ms, {found.p99_ms:.0f} ms",
        "episodes": f"{found.purchases:,}",
        "errors": json.dumps(found.errors) if found.errors else "none",
        "memory": f"{found.memory_mb:.0f} MB, {found.growth_mb_per_min:+.2f} MB a minute",
    }.items():
        table.add_row(name, value)
    return table
