"""`proxmo webshop`: the shop on the network."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from .failures import debug_option
from .lazy import CONTEXT
from .ranges import Number

_NEEDED = ("flask", "prometheus_client", "waitress")


@click.group("webshop", context_settings=CONTEXT)
def command() -> None:
    """Serve the web shop to browsers and to environments on other machines."""


@command.command("serve")
@click.option("--host", default="127.0.0.1", metavar="ADDR", help="Address  [127.0.0.1]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=3000,
    metavar="N",
    help="Port; 0 takes a free one  [3000]",
)
@click.option(
    "--data",
    metavar="PATH",
    help="Raw files of the original, or what `proxmo data webshop` packed  [bundled]",
)
@click.option("--difficulty", default="default", metavar="D", help="Of the bundled data  [default]")
@click.option(
    "--profile",
    type=click.Choice(["clean", "original"]),
    default="clean",
    help="Rules of the game, see docs/webshop.md  [clean]",
)
@click.option(
    "--goals",
    type=click.Choice(["synthetic", "human"]),
    default="synthetic",
    help="Who wrote the instructions  [synthetic]",
)
@click.option(
    "--title-nouns",
    metavar="FILE",
    help="Nouns that a tagger found in the titles, for rewards exactly as with spaCy.",
)
@click.option("--attributes", "show_attributes", is_flag=True, help="Show products' attributes.")
@click.option(
    "--workers", type=click.IntRange(min=1), default=1, metavar="N", help="Processes  [1]"
)
@click.option(
    "--sessions",
    type=click.IntRange(min=1),
    default=1000,
    metavar="N",
    help="The most open at a time; one more is answered with 429  [1000]",
)
@click.option(
    "--idle",
    "idle_s",
    type=Number(min=0, min_open=True),
    default=1800.0,
    metavar="S",
    help="Seconds without a request after which a session is gone  [1800]",
)
@click.option(
    "--log",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write what shoppers do, a file of JSON lines for each session.",
)
@debug_option
def serve(
    host: str,
    port: int,
    workers: int,
    sessions: int,
    idle_s: float,
    log: Path | None,
    **shop: Any,
) -> None:
    """Serve the shop until Ctrl-C: pages for people at /, JSON at /api, /health and /metrics.

    An environment plays in it with `gymnasium.make("WebShop-v0", base_url="http://...")`. There is
    no password and no encryption: give --host an address only where you trust the network.
    """
    from proxmo.errors import MissingDependencyError

    # Only looked for: `serve` has to set something before prometheus_client is imported.
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise MissingDependencyError(
            f"serving needs {', '.join(missing)}: run `pip install 'proxmo[webshop]'`"
        )
    from webshop_server.app.serve import Limits, Settings, serve

    settings = Settings(host, port, workers, Limits(sessions, idle_s), log, shop)
    serve(settings, lambda line: click.echo(f"{line}; Ctrl-C ends it", err=True))
