"""`proxmo webshop serve`: its errors, each in one line; the server has tests of its own."""

from __future__ import annotations

import gc
import socket

import pytest


# waitress leaves its sockets to the garbage collector when it cannot start.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_address_that_cannot_be_served_is_one_line(proxmo):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = proxmo("webshop", "serve", "--difficulty", "tiny", "--port", port)
    assert done.code == 1 and "in use; name another host or port" in done.error_line
    gc.collect()
    done = proxmo("webshop", "serve", "--difficulty", "tiny", "--host", "nowhere.invalid")
    assert done.code == 1 and "error: no address nowhere.invalid:3000" in done.error_line


@pytest.mark.parametrize(("option", "value"), [("--data", "/nowhere"), ("--difficulty", "odd")])
def test_data_that_is_not_there_is_one_line(proxmo, option: str, value: str):
    done = proxmo("webshop", "serve", "--port", "0", option, value)
    assert done.code == 1 and value in done.error_line
    assert "unexpected" not in done.error_line


@pytest.mark.parametrize(
    "setting",
    ["--port=70000", "--workers=0", "--sessions=0", "--idle=0", "--idle=nan", "--profile=fair"]
    + ["--goals=mine"],
)
def test_what_makes_no_sense_is_a_usage_error(proxmo, setting: str):
    done = proxmo("webshop", "serve", setting)
    assert done.code == 2 and setting.partition("=")[0] in done.error_line


def test_without_the_extra_one_line_says_what_to_install(proxmo, monkeypatch):
    monkeypatch.setattr("proxmo_cli.webshop.find_spec", lambda name: None)
    done = proxmo("webshop", "serve")
    missing = "serving needs flask, prometheus_client, waitress"
    assert done.code == 1
    assert f"{missing}: run `pip install 'proxmo[webshop]'`" in done.error_line
