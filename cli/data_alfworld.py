"""`proxmo data alfworld`: packs the official games into one file."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proxmo.errors import UsageError

from .display import show
from .failures import debug_option

if TYPE_CHECKING:
    from proxmo_envs.alfworld.official import Listing

_CACHE = Path("~/.cache/proxmo/alfworld")


@click.command("alfworld")
@click.option(
    "--from",
    "origin",
    metavar="PATH",
    type=click.Path(exists=True, path_type=Path),
    help="Official data directory, or a .zip archive of one.",
)
@click.option("--download", is_flag=True, help="Fetch the public archive, instead of --from.")
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The packed file, for --data.",
)
@click.option("--url", metavar="URL", help="Archive to fetch  [that of the original's own tool]")
@click.option("--sha256", metavar="HEX", help="Checksum it must have  [that of the first download]")
@click.option(
    "--cache",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    default=_CACHE,
    help=f"Where archives are kept  [{_CACHE}]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON.")
@debug_option
def command(
    origin: Path | None,
    download: bool,
    out: Path,
    url: str | None,
    sha256: str | None,
    cache: Path,
    as_json: bool,
) -> None:
    """Pack the official ALFWorld games into one file that opens at once."""
    if (origin is None) != download:
        raise UsageError("give either --from PATH or --download")
    if origin is not None and (url or sha256):
        raise UsageError("--url and --sha256 belong to --download")
    from proxmo_envs.alfworld.download import ARCHIVE, fetch
    from proxmo_envs.alfworld.official import pack

    if origin is not None and out.exists() and out.samefile(origin):
        raise UsageError(f"--out {out} is the file that --from names; give another one")
    if origin is None:
        origin = fetch(url or ARCHIVE, cache.expanduser(), sha256=sha256, progress=_Percent())
    out.parent.mkdir(parents=True, exist_ok=True)
    _print(pack(origin, out), out, as_json=as_json)


class _Percent:
    """Shows on stderr how far a download is, every ten per cent."""

    def __init__(self) -> None:
        self._said = -1

    def __call__(self, done: int, total: int) -> None:
        tenths = 10 * done // total if total else done // 100_000_000
        if tenths != self._said:
            self._said = tenths
            of = f" of {total / 1e6:,.1f}" if total else ""
            click.echo(f"downloaded {done / 1e6:,.1f}{of} MB", err=True)


def _print(listings: dict[str, Listing], out: Path, *, as_json: bool) -> None:
    if as_json:
        counts = {
            split: {"games": len(one.ids), "left_out": dict(one.left_out)}
            for split, one in listings.items()
        }
        result = {"file": str(out), "bytes": out.stat().st_size, "splits": counts}
        click.echo(json.dumps(result, indent=2))
        return
    from rich.table import Table

    table = Table("split", "games", "left out", box=None, pad_edge=False)
    left_out: Counter[str] = Counter()
    for split, one in listings.items():
        reasons = Counter(one.left_out)
        left_out += reasons
        table.add_row(split, f"{len(one.ids):,}", f"{reasons.total():,}")
    show(table)
    for reason, number in left_out.most_common():
        show(f"left out {number:,}: {reason}")
    show(f"{out}: {out.stat().st_size:,} bytes")
