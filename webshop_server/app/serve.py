"""Run the shop as a server: waitress in one process, gunicorn with several workers.

gunicorn forks its workers from a process that has opened the shop, so they share its memory; the
sessions are in a file that all of them read (see `store`).
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webshop_server.app.store import Limits

if TYPE_CHECKING:
    from flask import Flask

_THREADS = 8
# An agent may think for minutes between two actions of a connection.
_KEEP_ALIVE_S = 300
# More connections than sessions: browsers open several, and tools look at /health.
_SPARE_CONNECTIONS = 200


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a server.

    Attributes:
        host: address to listen on.
        port: port to listen on; 0 takes a free one.
        workers: number of processes.
        limits: bounds of the sessions.
        log: directory of trajectories; None writes none.
        shop: arguments of `Shop.open`.
    """

    host: str = "127.0.0.1"
    port: int = 3000
    workers: int = 1
    limits: Limits = Limits()
    log: Path | None = None
    shop: dict[str, Any] = field(default_factory=dict)


def serve(settings: Settings, tell: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; calls `tell` with the address once the server listens.

    Raises:
        ShopError: the data is missing or broken.
        OSError: the address is taken, or the log cannot be written.
    """
    with _private_directory() as directory:
        if settings.workers > 1:
            # Read when prometheus_client is imported, which `site` does.
            numbers = directory / "metrics"
            numbers.mkdir()
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(numbers)
        from webshop_server.app.site import create_app
        from webshop_server.shop import Shop

        shop = Shop.open(**settings.shop)
        app = create_app(shop, directory, limits=settings.limits, log=settings.log)
        goods = f"{len(shop.catalogue):,} products, {len(shop.goals):,} {shop.goals.kind} goals"

        def ready(host: str, port: int) -> None:
            tell(f"WebShop at http://{_join(host, port)}: {goods}, profile {shop.profile}")

        connections = settings.limits.sessions + _SPARE_CONNECTIONS
        run = _run_gunicorn if settings.workers > 1 else _run_waitress
        run(app, settings, connections, ready)


def _run_waitress(
    app: Flask, settings: Settings, connections: int, ready: Callable[[str, int], None]
) -> None:
    from waitress.server import create_server

    # waitress warns of every request that waits for a thread, which is normal under load.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    try:
        server = create_server(
            app,
            host=settings.host,
            port=settings.port,
            threads=_THREADS,
            connection_limit=connections,
            channel_timeout=_KEEP_ALIVE_S,
            # The default, select(), fails above 1,024 connections.
            asyncore_use_poll=True,
            ident=None,
        )
    except ValueError as error:  # The host has no address.
        raise OSError(f"no address {_join(settings.host, settings.port)}: {error}") from error
    except OSError as error:
        raise _cannot_listen(settings, error) from error
    # SIGTERM acts like Ctrl-C: the server ends its threads and returns.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # A name such as "localhost" may stand for two addresses.
    listens = getattr(server, "effective_listen", None) or [(None, server.effective_port)]
    ready(settings.host, int(listens[0][1]))
    server.run()


def _run_gunicorn(
    app: Flask, settings: Settings, connections: int, ready: Callable[[str, int], None]
) -> None:
    try:
        from gunicorn.app.base import BaseApplication
    except ImportError as error:  # Windows has no fork.
        raise OSError(f"several workers need gunicorn, which does not run here: {error}") from error

    # We bind the socket, because gunicorn would try five times and log each failure.
    bound = socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((settings.host, settings.port))
    except OSError as error:
        bound.close()
        raise _cannot_listen(settings, error) from error

    class Server(BaseApplication):
        def load_config(self) -> None:
            options = {
                "bind": f"fd://{bound.detach()}",
                "workers": settings.workers,
                "worker_class": "gthread",
                "threads": _THREADS,
                "worker_connections": connections,
                "keepalive": _KEEP_ALIVE_S,
                "loglevel": "warning",
                "when_ready": lambda arbiter: ready(*arbiter.LISTENERS[0].sock.getsockname()[:2]),
            }
            for name, value in options.items():
                self.cfg.set(name, value)

        def load(self) -> Flask:
            return app

    Server().run()


def _cannot_listen(settings: Settings, error: OSError) -> OSError:
    address = _join(settings.host, settings.port)
    return OSError(f"cannot listen at {address}: {error.strerror}; name another host or port")


def _join(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@contextmanager
def _private_directory() -> Iterator[Path]:
    """Make a directory that only this user can read; remove it when this process ends."""
    directory = Path(tempfile.mkdtemp(prefix="proxmo-webshop-"))
    owner = os.getpid()
    try:
        yield directory
    finally:
        # Workers of gunicorn run this, too.
        if os.getpid() == owner:
            shutil.rmtree(directory, ignore_errors=True)
