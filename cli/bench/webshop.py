"""A server of the shop under the load of many shoppers: speed, errors and memory.

Each shopper keeps one connection and sends its next request as soon as the last one is answered, so
the server always works at its limit.
"""

from __future__ import annotations

import asyncio
import html
import json
import multiprocessing
import re
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode, urlsplit

import numpy as np

from webshop_server.app.serve import Settings, serve
from webshop_server.rules.actions import SEARCH_TEMPLATE

from .processes import resident_bytes

Surface = Literal["pages", "api"]
_STARTS_IN_S = 120.0
_MEMORY_EVERY_S = 1.0
# Clicks after the search, before the shopper buys.
_CLICKS = 5
_BUY, _BACK = "click[buy now]", "click[back to search]"
_ANSWER_S = 60.0
_STEP = re.compile(r'name="step" value="(\d+)"')
_ACTION = re.compile(r'name="action" value="([^"]*)"')
_TASK = re.compile(r"Instruction:<br>([^<]*)<")


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of a load test.

    Attributes:
        surface: "pages" (what browsers send) or "api".
        workers: processes of the server.
        sessions: shoppers at a time.
        seconds: duration of the test.
        requests: number of answered ones.
        requests_per_s: requests of all shoppers together.
        p50_ms, p99_ms: time from sending a request to its whole answer.
        purchases: episodes played to the end.
        errors: kind of error -> how often: answers other than 2xx and 3xx, broken connections.
        memory_mb: resident memory of all processes of the server at the end (shared pages count
            several times); 0 where unknown.
        growth_mb_per_min: slope of the memory over the second half of the time.
    """

    surface: Surface
    workers: int
    sessions: int
    seconds: float
    requests: int
    requests_per_s: float
    p50_ms: float
    p99_ms: float
    purchases: int
    errors: dict[str, int]
    memory_mb: float
    growth_mb_per_min: float


@dataclass(slots=True)
class _Load:
    """The server, and what happens while the shoppers shop."""

    address: str
    pid: int
    surface: Surface
    end: float
    times: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    purchases: int = 0
    memory: list[tuple[float, float]] = field(default_factory=list)


def measure(
    settings: Settings, *, sessions: int, seconds: float, surface: Surface, seed: int = 0
) -> Measurement:
    """Start a server, let `sessions` shoppers shop in it for `seconds`, and end it.

    Raises:
        OSError: the server does not start.
    """
    with _serving(settings) as (address, pid):
        load = _Load(address, pid, surface, end=time.monotonic() + seconds)
        asyncio.run(_run(load, np.random.default_rng(seed).spawn(sessions)))
    # The first half fills caches and pools of the processes.
    late = np.array(load.memory[len(load.memory) // 2 :])
    slope = np.polyfit(late[:, 0], late[:, 1], 1)[0] if len(late) > 1 else float("nan")
    p50, p99 = np.percentile(load.times or [float("nan")], (50, 99)) * 1000
    return Measurement(
        surface,
        settings.workers,
        sessions,
        seconds,
        requests=len(load.times),
        requests_per_s=len(load.times) / seconds,
        p50_ms=float(p50),
        p99_ms=float(p99),
        purchases=load.purchases,
        errors=dict(load.errors),
        memory_mb=load.memory[-1][1],
        growth_mb_per_min=float(slope * 60),
    )


@contextmanager
def _serving(settings: Settings) -> Iterator[tuple[str, int]]:
    """Run a server in a process of its own; gives its address and process id."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=serve, args=(settings, sender.send))
    process.start()
    sender.close()
    try:
        if not receiver.poll(_STARTS_IN_S):
            raise OSError(f"the server says nothing after {_STARTS_IN_S:g} s")
        address = re.search(r"http://[^/ ]+:\d+", receiver.recv())
        assert address is not None and process.pid is not None
        yield address[0], process.pid
    except EOFError as error:
        raise OSError("the server did not start; what it printed above says why") from error
    finally:
        process.terminate()
        process.join()


async def _run(load: _Load, rngs: Sequence[np.random.Generator]) -> None:
    await asyncio.gather(_watch_memory(load), *(_shop(load, rng) for rng in rngs))


async def _watch_memory(load: _Load) -> None:
    while time.monotonic() < load.end or not load.memory:
        load.memory.append((time.monotonic(), _resident_mb(load.pid)))
        await asyncio.sleep(_MEMORY_EVERY_S)


def _resident_mb(pid: int) -> float:
    """Return the resident memory of a process and its children."""
    children: list[str] = []
    with suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return resident_bytes(pid) / (1 << 20) + sum(_resident_mb(int(child)) for child in children)


async def _shop(load: _Load, rng: np.random.Generator) -> None:
    """Play one episode after the other; after an error, start anew on a new connection."""
    while time.monotonic() < load.end:
        shopper = {"pages": _PagesShopper, "api": _ApiShopper}[load.surface](load)
        try:
            await shopper.connect()
            while time.monotonic() < load.end:
                await _play(shopper, rng)
                load.purchases += 1
        except (OSError, EOFError, asyncio.TimeoutError, _AnswerError) as error:
            load.errors[f"{type(error).__name__}: {error}"[:100]] += 1
        finally:
            shopper.disconnect()


async def _play(shopper: _Shopper, rng: np.random.Generator) -> None:
    await shopper.enter()
    words = shopper.task.split()
    start = int(rng.integers(max(len(words) - 4, 1)))
    await shopper.act(f"search[{' '.join(words[start : start + 4])}]")
    for _ in range(_CLICKS):
        # Buying comes at the end; a search needs words.
        options = [one for one in shopper.actions if one not in (_BUY, _BACK, SEARCH_TEMPLATE)]
        if not options:
            break
        await shopper.act(options[int(rng.integers(len(options)))])
    if _BUY in shopper.actions:
        await shopper.act(_BUY)
    await shopper.leave()


class _AnswerError(Exception):
    """The server answered with an error."""


class _Shopper(ABC):
    """One connection and the page it is on."""

    def __init__(self, load: _Load) -> None:
        self._where = urlsplit(load.address)
        self._times = load.times
        self._path = ""
        self._step = 0
        self.task = ""
        self.actions: list[str] = []

    async def connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(
            self._where.hostname, self._where.port
        )

    def disconnect(self) -> None:
        with suppress(AttributeError):
            self._writer.close()

    @abstractmethod
    async def enter(self) -> None: ...

    @abstractmethod
    async def act(self, action: str) -> None: ...

    @abstractmethod
    async def leave(self) -> None: ...

    async def _ask(self, method: str, path: str, body: str = "", kind: str = "") -> tuple[str, str]:
        """Return location and content of an answer, and note how long it took."""
        start = time.perf_counter()
        self._writer.write(
            f"{method} {path} HTTP/1.1\r\nHost: {self._where.netloc}\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {len(body.encode())}\r\n\r\n{body}".encode()
        )
        head = (await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), _ANSWER_S)).decode()
        status = int(head.split(" ", 2)[1])
        named = dict(line.lower().partition(": ")[::2] for line in head.split("\r\n")[1:])
        content = await self._reader.readexactly(int(named.get("content-length", 0)))
        self._times.append(time.perf_counter() - start)
        if status >= 400:
            raise _AnswerError(f"{status} for {method} {path.split('/')[1]}")
        location = re.search(r"(?im)^location: (\S+)", head)
        return "" if location is None else location[1], content.decode()


class _ApiShopper(_Shopper):
    """Plays as an environment with `base_url` does."""

    async def _see(self, method: str, path: str, body: dict[str, Any] | None = None) -> None:
        _, content = await self._ask(method, path, json.dumps(body or {}), "application/json")
        view = json.loads(content)
        self._path = f"/api/sessions/{view['session_id']}"
        self._step, self.task = view["step"], view["task"]
        self.actions = view["admissible_actions"]

    async def enter(self) -> None:
        await self._see("POST", "/api/sessions")

    async def act(self, action: str) -> None:
        await self._see("POST", f"{self._path}/actions", {"action": action, "step": self._step})

    async def leave(self) -> None:
        await self._ask("DELETE", self._path)


class _PagesShopper(_Shopper):
    """Plays as a person with a browser does: posts forms and follows to the next page."""

    async def _post(self, path: str, **form: str) -> None:
        location, content = await self._ask(
            "POST", path, urlencode(form), "application/x-www-form-urlencoded"
        )
        if location:
            self._path = location.partition("?")[0]
            _, content = await self._ask("GET", location)
        step, task = _STEP.search(content), _TASK.search(content)
        self._step = int(step[1]) if step else 0
        self.task = html.unescape(task[1]) if task else ""
        self.actions = [html.unescape(action) for action in _ACTION.findall(content)]

    async def enter(self) -> None:
        await self._post("/shop")

    async def act(self, action: str) -> None:
        query = action.removeprefix("search[")
        named = {"action": action} if query == action else {"search_query": query[:-1]}
        await self._post(self._path, step=str(self._step), **named)

    async def leave(self) -> None:
        await self._post(f"{self._path}/leave")
