"""`proxmo webshop`: the shop on the network."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from . import options
from .lazy import CONTEXT

_NEEDED = ("flask", "prometheus_client", "waitress")


@click.group("webshop", context_settings=CONTEXT)
def command() -> None:
    """Serve the web shop to browsers and to environments on other machines."""


@command.command("serve")
@options.text("--host", "Address", "127.0.0.1", metavar="ADDR")
@options.count("--port", "Port; 0 takes a free one", 3000, type=click.IntRange(0, 65535))
@options.data("Raw files of the original, or what `proxmo data webshop` packed  [bundled]")
@options.text("--difficulty", "Of the bundled data", "default", metavar="D")
@options.choice("--profile", "Rules of the game, see docs/webshop.md", ("clean", "original"))
@options.choice("--goals", "Who wrote the instructions", ("synthetic", "human"))
@options.text(
    "--title-nouns",
    "Nouns that a tagger found in the titles, for rewards exactly as with spaCy.",
    metavar="FILE",
)
@click.option("--attributes", "show_attributes", is_flag=True, help="Show products' attributes.")
@options.count("--workers", "Processes", 1)
@options.count("--sessions", "The most open at a time; one more is answered with 429", 1000)
@options.number(
    "--idle",
    "Seconds without a request after which a session is gone",
    1800.0,
    name="idle_s",
    above=0,
    metavar="S",
)
@options.path("--log", "Write what shoppers do, a file of JSON lines for each session.", file=False)
@options.debug
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
