"""A server of a shop inside the test process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flask import Flask
from waitress import wasyncore
from waitress.server import create_server

from webshop_server.app.site import create_app
from webshop_server.app.store import Limits
from webshop_server.shop import Shop

DEFAULT = Limits()


@contextmanager
def served(shop: Shop, directory: Path, limits: Limits = DEFAULT) -> Iterator[tuple[str, Flask]]:
    """Serve a shop from a thread; gives the address and the application."""
    app = create_app(shop, directory, limits=limits, seed=0)
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
        app.extensions["webshop"].sessions.disconnect()
        assert not thread.is_alive()
