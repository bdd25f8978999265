"""`proxmo data alfworld`: packs the official games into one file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proxmo.errors import UsageError

from . import options
from .display import progress, show, show_json, show_table

if TYPE_CHECKING:
    from proxmo_envs.alfworld.official import Listing

_CACHE = "~/.cache/proxmo/alfworld"


@click.command("alfworld")
@options.path(
    "--from",
    "Official data directory, or a .zip archive of one.",
    name="origin",
    metavar="PATH",
    exists=True,
)
@click.option("--download", is_flag=True, help="Fetch the public archive, instead of --from.")
@options.path(
    "--out", "The packed file, for --data.", metavar="FILE", directory=False, required=True
)
@options.text("--url", "Archive to fetch  [that of the original's own tool]", metavar="URL")
@options.text("--sha256", "Checksum it must have  [that of the first download]", metavar="HEX")
@options.path("--cache", "Where archives are kept", _CACHE, file=False)
@options.as_json("Print the counts as JSON.")
@options.debug
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
    with progress("proxmo data alfworld", keep=False) as listener:
        if origin is None:
            origin = fetch(
                url or ARCHIVE,
                cache.expanduser(),
                sha256=sha256,
                progress=lambda done, total: listener.phase(
                    "downloading", done=done >> 20, total=total >> 20, text="MB"
                ),
            )
        out.parent.mkdir(parents=True, exist_ok=True)
        listings = pack(origin, out)
    _print(listings, out, as_json=as_json)


def _print(listings: dict[str, Listing], out: Path, *, as_json: bool) -> None:
    if as_json:
        counts = {
            split: {"games": len(one.ids), "left_out": dict(one.left_out)}
            for split, one in listings.items()
        }
        show_json({"file": str(out), "bytes": out.stat().st_size, "splits": counts})
        return
    left_out = {split: Counter(one.left_out) for split, one in listings.items()}
    show_table(
        ("split", "games", "left out"),
        [
            (split, f"{len(one.ids):,}", f"{left_out[split].total():,}")
            for split, one in listings.items()
        ],
    )
    for reason, number in sum(left_out.values(), Counter[str]()).most_common():
        show(f"left out {number:,}: {reason}")
    show(f"{out}: {out.stat().st_size:,} bytes")
