"""A server of a shop inside the test process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flask import Flask
from waitress import wasyncore
from waitress.server import create_server

from webshop_server.app.site import create_app
from webshop_server.app.store import Limits
from webshop_server.shop import Shop

DEFAULT = Limits()


@contextmanager
def application(shop: Shop, directory: Path, **options: Any) -> Iterator[Flask]:
    """The WSGI application of a shop; its file of sessions is closed afterwards."""
    app = create_app(shop, directory, seed=0, **options)
    try:
        yield app
    finally:
        app.extensions["webshop"].sessions.disconnect()


@contextmanager
def served(shop: Shop, directory: Path, limits: Limits = DEFAULT) -> Iterator[tuple[str, Flask]]:
    """Serve a shop from a thread; gives the address and the application."""
    with application(shop, directory, limits=limits) as app:
        server = create_server(app, map={}, host="127.0.0.1", port=0, threads=4)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.effective_port}", app
        finally:
            # In the thread of the server: it ends with its last socket.
            server.trigger.pull_trigger(lambda: wasyncore.close_all(server._map))
            thread.join(10)
            server.task_dispatcher.shutdown()
        assert not thread.is_alive()
