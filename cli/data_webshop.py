"""`proxmo data webshop`: the original's raw files, brought into the packed form."""

from __future__ import annotations

import time
from pathlib import Path

import click

from . import options
from .display import progress, show, show_json


@click.command("webshop")
@options.path(
    "--from",
    "Directory of the raw files (items_shuffle.json, ...), or the file of products.",
    name="origin",
    metavar="PATH",
    exists=True,
    required=True,
)
@options.path("--out", "The packed catalogue, for --data; must not exist yet.", required=True)
@options.count("--limit", "Take only the first N rows  [all]")
@options.seed("Seed of prices and price limits", 0)
@options.as_json("Print the counts as JSON.")
@options.debug
def command(origin: Path, out: Path, limit: int | None, seed: int, as_json: bool) -> None:
    """Pack the raw files of WebShop, its goals and a search index, so that it opens at once."""
    from webshop_server.data.packed import PackedCatalogue
    from webshop_server.data.raw import read_entries
    from webshop_server.packing import pack
    from webshop_server.rules.goals import Goals

    start = time.monotonic()
    with progress("proxmo data webshop", keep=False) as listener:
        entries = read_entries(origin, limit=limit, seed=seed, tell=listener.message)
        pack(
            entries,
            out,
            seed=seed,
            progress=lambda stage, done: listener.phase(stage, done=done, text="products"),
        )
    catalogue = PackedCatalogue(out)
    result = {
        "directory": str(out),
        "bytes": sum(path.stat().st_size for path in out.rglob("*") if path.is_file()),
        "seconds": round(time.monotonic() - start, 1),
        "products": len(catalogue),
        "synthetic_goals": len(Goals.build(catalogue, "synthetic")),
        "human_goals": len(Goals.build(catalogue, "human")),
        "manifest_hash": catalogue.manifest_hash,
    }
    if as_json:
        show_json(result)
        return
    show(
        f"{out}: {result['products']:,} products, {result['synthetic_goals']:,} synthetic and "
        f"{result['human_goals']:,} human goals, {result['bytes']:,} bytes, "
        f"{result['seconds']} s, manifest {catalogue.manifest_hash[:12]}"
    )
