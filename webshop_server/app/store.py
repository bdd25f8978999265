"""The sessions of a server: one SQLite file that all its workers share.

Any worker may answer any request, so all of them must see every session. A file needs no further
process: cap and idle time hold for the whole server, a worker that dies loses no session, and the
memory of the workers does not grow with the sessions. A session takes 1 to 3 kB without the shop;
reading and writing it costs less than rendering the page. The file is not synced to the disk,
because sessions live only as long as the server.

Two requests to one session cannot mix: an action is written only if the session is still at the
step where it was read; otherwise it is carried out again on the newer state.
"""

from __future__ import annotations

import io
import pickle
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webshop_server.app.errors import ShopFullError, StaleStepError, UnknownSessionError
from webshop_server.data.products import Product
from webshop_server.rules.records import ShoppingGoal
from webshop_server.session import ActionResult, Session
from webshop_server.shop import Shop


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the sessions of a server.

    Attributes:
        sessions: largest number of open sessions.
        idle_s: seconds without a request after which a session expires.
    """

    sessions: int = 1000
    idle_s: float = 1800.0


_SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS session (
    token TEXT PRIMARY KEY, seen REAL NOT NULL, step INTEGER NOT NULL, state BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS age ON session (seen);
"""
_TOKEN_BYTES = 16
_BUSY_S = 30.0
# Reading also keeps a session alive; we record it at most this often.
_NOTE_EVERY_S = 1.0


class Sessions:
    """Open, find, change and close sessions; safe for threads, and for processes after a fork."""

    def __init__(
        self, shop: Shop, path: Path, limits: Limits, *, clock: Callable[[], float] = time.time
    ) -> None:
        """Keep the sessions of `shop` in the file `path`, whose directory only we can read.

        Makes the file if it is missing. All processes must have the same `clock`, in seconds.
        """
        self.shop = shop
        self.limits = limits
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        with self._lock:
            self._connect().executescript(_SCHEMA)
        # A connection must not cross a fork: each process opens its own at the first request.
        self.disconnect()

    def create(self, goal: int) -> str:
        """Open a session for the goal with this number; return its token.

        Raises:
            ShopFullError: the cap is reached.
        """
        # Pages show the goal's number, not the token, so that they equal those of the environment.
        return self._insert(Session(self.shop, self.shop.goals[goal], str(goal)), step=0)

    def copy(self, token: str) -> str:
        """Open a session at the same moment as another; raises as `read` and `create` do."""
        session, step = self.read(token)
        return self._insert(session, step)

    def read(self, token: str) -> tuple[Session, int]:
        """Return a session and its step, the number of actions so far.

        The session is the caller's own copy. Raises `UnknownSessionError`.
        """
        step, seen, state = self._find(token)
        now = self._clock()
        if now - seen > _NOTE_EVERY_S:
            self._run("UPDATE session SET seen = ? WHERE token = ?", now, token)
        return self._load(state), step

    def act(
        self, token: str, action: str, expected_step: int | None = None
    ) -> tuple[ActionResult, Session, int]:
        """Carry out an action; return what it did, the session and its new step.

        Raises:
            UnknownSessionError: there is no such session.
            StaleStepError: the session is not at `expected_step`.
        """
        while True:
            step, _, state = self._find(token)
            if expected_step not in (None, step):
                raise StaleStepError(
                    f"the action is for step {expected_step} of the session, which is at {step}"
                )
            session = self._load(state)
            result = session.act(action)
            _, written = self._run(
                "UPDATE session SET seen = ?, step = ?, state = ? WHERE token = ? AND step = ?",
                *(self._clock(), step + 1, _dump(session), token, step),
            )
            if written:
                return result, session, step + 1

    def close(self, token: str) -> None:
        """Close a session; raises `UnknownSessionError`."""
        _, removed = self._run("DELETE FROM session WHERE token = ?", token)
        if not removed:
            raise self._unknown(token)

    def count(self) -> int:
        """Return the number of open sessions."""
        rows, _ = self._run("SELECT COUNT(*) FROM session WHERE seen > ?", self._idle_since())
        return int(rows[0][0])

    def _idle_since(self) -> float:
        """Return the time of the last request of a session that expires now."""
        return self._clock() - self.limits.idle_s

    def disconnect(self) -> None:
        """Close the connection of this process; the next use opens another."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _insert(self, session: Session, step: int) -> str:
        self._run("DELETE FROM session WHERE seen <= ?", self._idle_since())
        token = secrets.token_hex(_TOKEN_BYTES)
        # One statement counts and writes, so that no other worker comes between.
        _, written = self._run(
            "INSERT INTO session SELECT ?, ?, ?, ? WHERE (SELECT COUNT(*) FROM session) < ?",
            *(token, self._clock(), step, _dump(session), self.limits.sessions),
        )
        if not written:
            raise ShopFullError(
                f"the shop is full: all {self.limits.sessions} sessions are taken. Close one, wait "
                f"until one has been idle for {self.limits.idle_s:g} s, or start the server with a "
                "higher --sessions"
            )
        return token

    def _find(self, token: str) -> tuple[int, float, bytes]:
        """Return step, time of the last request and state of a session."""
        rows, _ = self._run(
            "SELECT step, seen, state FROM session WHERE token = ? AND seen > ?",
            *(token, self._idle_since()),
        )
        if not rows:
            raise self._unknown(token)
        return rows[0]

    def _unknown(self, token: str) -> UnknownSessionError:
        return UnknownSessionError(
            f"no session {token[:40]!r}: it was closed, was idle for {self.limits.idle_s:g} s, or "
            "never was; open a new one"
        )

    def _load(self, state: bytes) -> Session:
        loader = _Loader(io.BytesIO(state))
        loader.shop = self.shop
        session: Session = loader.load()
        return session

    def _run(self, statement: str, *values: object) -> tuple[list[Any], int]:
        """Run one statement as a transaction; return its rows and the number of rows it changed."""
        with self._lock:
            cursor = self._connect().execute(statement, values)
            return cursor.fetchall(), cursor.rowcount

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(
                self._path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA synchronous = OFF")
        return self._connection


class _Dumper(pickle.Pickler):
    """Writes a session without the shop: refers to products, goals and the shop by name."""

    def persistent_id(self, value: Any) -> tuple[str, str] | None:
        if isinstance(value, Product):
            return "product", value.asin
        if isinstance(value, ShoppingGoal):
            return "goal", value.goal_id
        return ("shop", "") if isinstance(value, Shop) else None


class _Loader(pickle.Unpickler):
    """Reads the bytes that `_Dumper` wrote; no client can send any."""

    shop: Shop

    def persistent_load(self, name: tuple[str, str]) -> Any:
        kind, value = name
        if kind == "product":
            return self.shop.catalogue.get(value)
        return self.shop.goals.get(value) if kind == "goal" else self.shop


def _dump(session: Session) -> bytes:
    file = io.BytesIO()
    _Dumper(file, protocol=5).dump(session)
    return file.getvalue()
