"""`proxmo webshop serve` as a process: one worker and two, caps, idle time, Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

_STARTS_IN_S = 60
TINY = ("--port", "0", "--difficulty", "tiny")


@contextmanager
def serving(*options: str, directory: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run the server; gives its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "proxmo_cli", "webshop", "serve", *TINY, *options],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(directory)},
    )
    assert process.stderr is not None
    try:
        address = re.search(r"http://[\d.]+:\d+", process.stderr.readline())
        assert address is not None
        yield address[0], process
    finally:
        process.terminate()
        process.stderr.read()
        process.wait(_STARTS_IN_S)
        process.stderr.close()


def ask(address: str, body: Any = None) -> Any:
    """Return the JSON of an answer; raises HTTPError."""
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(address, data), timeout=30) as answer:
        return json.load(answer)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_session_is_whole_whichever_worker_answers(workers, tmp_path):
    options = ("--workers", workers, "--sessions", "12", "--log", str(tmp_path / "log"))
    with serving(*options, directory=tmp_path) as (address, process):
        (sessions,) = tmp_path.glob("proxmo-webshop-*")
        assert sessions.stat().st_mode & 0o077 == 0

        # A new connection for each request: the workers take turns.
        def shop(number: int) -> tuple[str, str]:
            view = ask(f"{address}/api/sessions", {"goal_index": number % 4})
            path = f"{address}/api/sessions/{view['session_id']}/actions"
            for step, action in enumerate(("search[a b c]", "click[back to search]")):
                view = ask(path, {"action": action, "step": step})
                assert view["valid"] is True
            return view["session_id"], view["task"]

        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(shop, range(12)))
        assert len({session for session, _ in found}) == 12
        assert len({task for _, task in found}) == 4
        for _ in range(4):
            with pytest.raises(HTTPError, match="429") as full:
                ask(f"{address}/api/sessions", {})
            assert json.load(full.value)["error"]["code"] == "shop_full"
            full.value.close()
        with urlopen(f"{address}/metrics") as answer:
            numbers = answer.read()
        for name in (b"sessions_started_total 12.0", b"sessions_refused_total 4.0"):
            assert b"webshop_" + name in numbers
        assert len(list((tmp_path / "log").iterdir())) == 12
        process.send_signal(signal.SIGINT)
        assert process.wait(_STARTS_IN_S) == 0
    assert not list(tmp_path.glob("proxmo-webshop-*"))


def test_several_workers_say_in_one_line_that_they_cannot_listen():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = ("--difficulty", "tiny", "--workers", "2", "--port", str(port))
        done = subprocess.run(
            [sys.executable, "-m", "proxmo_cli", "webshop", "serve", *options],
            stderr=subprocess.PIPE,
            text=True,
        )
    why = f"error: cannot listen at 127.0.0.1:{port}: Address already in use; name another host"
    assert done.returncode == 1 and done.stderr == f"{why} or port\n"


def test_the_idle_time_is_the_one_asked_for(tmp_path):
    with serving("--idle", "1", directory=tmp_path) as (address, _):
        ask(f"{address}/api/sessions", {})
        end = time.monotonic() + 30
        while ask(f"{address}/health")["sessions"]:
            assert time.monotonic() < end
            time.sleep(0.1)
