"""`proxmo bench webshop-http`: a server under the load of many shoppers.

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
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import urlencode, urlsplit

import click
import numpy as np

from proxmo.reporting.tables import facts_table
from webshop_server.app.serve import Settings, serve
from webshop_server.rules.actions import SEARCH_TEMPLATE

from .. import options
from ..display import progress, show, show_json
from ..failures import DONE, FAILED
from .measurements import Column, cells
from .processes import resident_bytes

# Requests per second of the original's best server, when its recordings were made.
_ORIGINAL_PER_S = 61
_STARTS_IN_S = 120.0
_MEMORY_EVERY_S = 1.0
# Clicks after the search, before the shopper buys.
_CLICKS = 5
_BUY, _BACK = "click[buy now]", "click[back to search]"
_ANSWER_S = 60.0
_STEP = re.compile(r'name="step" value="(\d+)"')
_ACTION = re.compile(r'name="action" value="([^"]*)"')
_TASK = re.compile(r"Instruction:<br>([^<]*)<")


def _beside_original(rate: float) -> str:
    return f"{rate:.0f} ({rate / _ORIGINAL_PER_S:.1f} times the original's)"


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of a load test."""

    # "pages" (what browsers send) or "api".
    surface: Annotated[str, Column("surface")]
    workers: Annotated[int, Column("workers")]
    sessions: Annotated[int, Column("shoppers")]
    seconds: Annotated[float, Column("duration", "{:g} s")]
    requests: Annotated[int, Column("requests", "{:,}")]
    # Of all shoppers together.
    requests_per_s: Annotated[float, Column("requests/s", _beside_original)]
    # From sending a request to its whole answer.
    p50_ms: Annotated[float, Column("p50", "{:.0f} ms")]
    p99_ms: Annotated[float, Column("p99", "{:.0f} ms")]
    # Episodes played to the end.
    purchases: Annotated[int, Column("episodes", "{:,}")]
    # Answers other than 2xx and 3xx, and broken connections, by kind.
    errors: Annotated[dict[str, int], Column("errors", lambda kinds: f"{kinds or 'none'}")]
    # Resident memory of all processes of the server at the end (shared pages count several times);
    # 0 where unknown.
    memory_mb: Annotated[float, Column("memory", "{:.0f} MB")]
    # Slope of the memory over the second half of the time.
    growth_mb_per_min: Annotated[float, Column("its growth", "{:+.2f} MB a minute")]


@click.command("webshop-http")
@options.count("--sessions", "Shoppers", 200)
@options.number("--seconds", "Duration", 60.0, minimum=1, metavar="S")
@options.count("--workers", "Processes", 2)
@options.choice("--surface", "What they use: the pages of people or the API", ("pages", "api"))
@options.data("As in `proxmo webshop serve`  [bundled]")
@options.text("--difficulty", "Of the bundled data", "default", metavar="D")
@options.seed("Seed", 0)
@options.as_json()
@options.debug
def command(workers: int, data: str | None, difficulty: str, as_json: bool, **load: Any) -> int:
    """Measure a server of the shop under load: requests a second, times, errors, memory.

    The server is started for it on a free port. The shoppers run in this process and on the same
    machine, and send the next request as soon as the last is answered. Exit code 1: errors.
    """
    settings = Settings(port=0, workers=workers, shop={"data": data, "difficulty": difficulty})
    with progress("proxmo bench webshop-http", keep=False) as listener:
        listener.phase("load", text=f"{load['sessions']} shoppers for {load['seconds']:g} s")
        found = _measure(settings, **load)
    if as_json:
        show_json(found)
    else:
        show(facts_table(cells(found)))
    return FAILED if found.errors else DONE


def _measure(
    settings: Settings, *, sessions: int, seconds: float, surface: str, seed: int
) -> Measurement:
    """Start a server, let `sessions` shoppers shop in it for `seconds`, and end it."""
    with _serving(settings) as (address, pid):
        load = _Load(address, pid, surface, end=time.monotonic() + seconds)
        asyncio.run(load.run(np.random.default_rng(seed).spawn(sessions)))
    # The first half fills caches and pools of the processes.
    late = np.array(load.memory[len(load.memory) // 2 :])
    slope = np.polyfit(late[:, 0], late[:, 1], 1)[0] if len(late) > 1 else float("nan")
    p50, p99 = np.percentile(load.times or [float("nan")], (50, 99)) * 1000
    return Measurement(
        surface,
        settings.workers,
        sessions,
        seconds,
        len(load.times),
        len(load.times) / seconds,
        float(p50),
        float(p99),
        load.purchases,
        dict(load.errors),
        load.memory[-1][1],
        float(slope * 60),
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


class _AnswerError(Exception):
    """The server answered with an error."""


@dataclass(slots=True)
class _Load:
    """The server, and what happens while the shoppers shop."""

    address: str
    pid: int
    surface: str
    end: float
    times: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    purchases: int = 0
    memory: list[tuple[float, float]] = field(default_factory=list)

    async def run(self, rngs: list[np.random.Generator]) -> None:
        """Let a shopper shop for each generator, and watch the memory."""
        await asyncio.gather(self._watch_memory(), *map(self._shop, rngs))

    async def _watch_memory(self) -> None:
        while time.monotonic() < self.end or not self.memory:
            self.memory.append(
                (time.monotonic(), resident_bytes(self.pid, children=True) / (1 << 20))
            )
            await asyncio.sleep(_MEMORY_EVERY_S)

    async def _shop(self, rng: np.random.Generator) -> None:
        """Play one episode after the other; after an error, start anew on a new connection."""
        where = urlsplit(self.address)
        while time.monotonic() < self.end:
            try:
                reader, writer = await asyncio.open_connection(where.hostname, where.port)
                try:
                    kind = _PagesShopper if self.surface == "pages" else _ApiShopper
                    shopper = kind(where.netloc, reader, writer, self.times)
                    while time.monotonic() < self.end:
                        await shopper.play(rng)
                        self.purchases += 1
                finally:
                    writer.close()
            except (OSError, EOFError, asyncio.TimeoutError, _AnswerError) as error:
                self.errors[f"{type(error).__name__}: {error}"[:100]] += 1


@dataclass(slots=True)
class _Shopper:
    """One connection and the page it is on."""

    host: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    times: list[float]
    path: str = ""
    step: int = 0
    task: str = ""
    actions: list[str] = field(default_factory=list)

    async def enter(self) -> None:
        """Begin a session with a random task."""
        raise NotImplementedError

    async def act(self, action: str) -> None:
        """Do something on the page."""
        raise NotImplementedError

    async def leave(self) -> None:
        """End the session."""
        raise NotImplementedError

    async def play(self, rng: np.random.Generator) -> None:
        """Search for some words of the task, click at random, and buy."""
        await self.enter()
        words = self.task.split()
        start = int(rng.integers(max(len(words) - 4, 1)))
        await self.act(f"search[{' '.join(words[start : start + 4])}]")
        for _ in range(_CLICKS):
            # Buying comes at the end; a search needs words.
            choices = [one for one in self.actions if one not in (_BUY, _BACK, SEARCH_TEMPLATE)]
            if not choices:
                break
            await self.act(choices[int(rng.integers(len(choices)))])
        if _BUY in self.actions:
            await self.act(_BUY)
        await self.leave()

    async def ask(self, method: str, path: str, body: str = "", kind: str = "") -> tuple[str, str]:
        """Return location and content of an answer, and note how long it took."""
        start = time.perf_counter()
        self.writer.write(
            f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {len(body.encode())}\r\n\r\n{body}".encode()
        )
        head = (await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), _ANSWER_S)).decode()
        status = int(head.split(" ", 2)[1])
        length = re.search(r"(?im)^content-length: (\d+)", head)
        content = await self.reader.readexactly(0 if length is None else int(length[1]))
        self.times.append(time.perf_counter() - start)
        if status >= 400:
            raise _AnswerError(f"{status} for {method} {path.split('/')[1]}")
        location = re.search(r"(?im)^location: (\S+)", head)
        return "" if location is None else location[1], content.decode()


class _ApiShopper(_Shopper):
    """Plays as an environment with `base_url` does."""

    async def _see(self, path: str, **body: Any) -> None:
        _, content = await self.ask("POST", path, json.dumps(body), "application/json")
        view = json.loads(content)
        self.path = f"/api/sessions/{view['session_id']}"
        self.step, self.task = view["step"], view["task"]
        self.actions = view["admissible_actions"]

    async def enter(self) -> None:
        await self._see("/api/sessions")

    async def act(self, action: str) -> None:
        await self._see(f"{self.path}/actions", action=action, step=self.step)

    async def leave(self) -> None:
        await self.ask("DELETE", self.path)


class _PagesShopper(_Shopper):
    """Plays as a person with a browser does: posts forms and follows to the next page."""

    async def _post(self, path: str, **form: str) -> None:
        location, content = await self.ask(
            "POST", path, urlencode(form), "application/x-www-form-urlencoded"
        )
        if location:
            self.path = location.partition("?")[0]
            _, content = await self.ask("GET", location)
        step, task = _STEP.search(content), _TASK.search(content)
        self.step = int(step[1]) if step else 0
        self.task = html.unescape(task[1]) if task else ""
        self.actions = [html.unescape(action) for action in _ACTION.findall(content)]

    async def enter(self) -> None:
        await self._post("/shop")

    async def act(self, action: str) -> None:
        query = action.removeprefix("search[")
        named = {"action": action} if query == action else {"search_query": query[:-1]}
        await self._post(self.path, step=str(self.step), **named)

    async def leave(self) -> None:
        await self._post(f"{self.path}/leave")
