"""`proxmo webshop serve`: its errors, each in one line; the server has tests of its own."""

from __future__ import annotations

import gc
import socket

import pytest


# waitress leaves its sockets to the garbage collector when it cannot start.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_taken_port_is_one_line(proxmo):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = proxmo("webshop", "serve", "--difficulty", "tiny", "--port", port)
    assert done.code == 1 and "in use; name another host or port" in done.error_line
    gc.collect()


def test_without_the_extra_one_line_says_what_to_install(proxmo, monkeypatch):
    monkeypatch.setattr("proxmo_cli.webshop.find_spec", lambda name: None)
    done = proxmo("webshop", "serve")
    missing = "serving needs flask, prometheus_client, waitress"
    assert done.code == 1
    assert f"{missing}: run `pip install 'proxmo[webshop]'`" in done.error_line
