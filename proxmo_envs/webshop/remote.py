"""A shop on a server of `proxmo webshop serve`; each episode is a session there."""

from __future__ import annotations

import hashlib
import weakref
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cache
from typing import Any
from urllib.parse import quote

from proxmo_envs.errors import (
    InvalidOptionError,
    ServerError,
    ShopFullError,
    UnknownTaskError,
    unknown,
)
from proxmo_envs.webshop.connection import Connection
from webshop_server.data.lazy_sequence import Computed
from webshop_server.rules.records import Reward
from webshop_server.session import ActionResult

_IDS_A_PAGE = 1000
# Error codes of the server and the errors to raise; other codes raise ServerError.
_ERRORS = {
    "bad_request": InvalidOptionError,
    "shop_full": ShopFullError,
    "unknown_task": UnknownTaskError,
}


class RemoteShop:
    """The shop of a server; the server keeps the sessions.

    A session is closed when the environment starts another episode or is closed; that of a snapshot
    with the first of these after the snapshot is gone.
    """

    def __init__(self, base_url: str, *, goals: str, profile: str) -> None:
        """Connect to a server.

        Raises:
            ServerError: no answer, or not that of such a server.
            InvalidOptionError: the server has other goals or another profile.
        """
        self.connection = Connection(base_url, _ERRORS)
        # Ids of abandoned sessions; a finaliser notes them, because it must not use the network.
        self.left: deque[str] = deque()
        facts = self.connection.ask("GET", "/api")
        for name, wanted in (("profile", profile), ("goals", goals)):
            if facts[name] != wanted:
                raise InvalidOptionError(
                    f"the shop at {base_url} has {name}={facts[name]!r}, not {wanted!r}: make the "
                    f"environment with {name}={facts[name]!r}, or serve with --{name} {wanted}"
                )
        self._splits: dict[str, int] = facts["splits"]
        self._place = f"{facts['profile']} {facts['catalogue_hash']}"

    def ids(self, split: str) -> Sequence[str]:
        """Return the ids of a split; raises InvalidOptionError for an unknown one."""
        if split not in self._splits:
            raise InvalidOptionError(unknown("split", split, self._splits))

        @cache
        def page(number: int) -> list[str]:
            path = f"/api/splits/{split}?offset={number * _IDS_A_PAGE}&limit={_IDS_A_PAGE}"
            ids: list[str] = self.connection.ask("GET", path)["task_ids"]
            return ids

        return Computed(
            self._splits[split], lambda index: page(index // _IDS_A_PAGE)[index % _IDS_A_PAGE]
        )

    def start(self, task: str | int) -> RemotePlay:
        """Start an episode; raises UnknownTaskError and ServerError."""
        name = "goal_index" if isinstance(task, int) else "task_id"
        return self.open("/api/sessions", {name: task})

    def open(self, path: str, body: dict[str, Any]) -> RemotePlay:
        """Open a session by a request."""
        return RemotePlay(self, self.connection.ask("POST", path, body))

    def content_hash(self, task_id: str) -> str:
        """Return the hash of a task, as for the same task in process; raises UnknownTaskError."""
        task = self.connection.ask("GET", f"/api/tasks/{quote(task_id)}")
        return hashlib.sha256(f"{self._place} {task['content_hash']}".encode()).hexdigest()

    def release(self) -> None:
        """Close the sessions of episodes that have ended."""
        while self.left:
            # A server that is gone has no sessions; one that was idle for too long is closed.
            with suppress(ServerError):
                self.connection.ask("DELETE", f"/api/sessions/{self.left.popleft()}")

    def __deepcopy__(self, memo: dict[int, object]) -> RemoteShop:
        """Return the shop itself; only sessions are copied."""
        return self


class RemotePlay:
    """One episode; a copy is another session."""

    def __init__(self, shop: RemoteShop, view: dict[str, Any]) -> None:
        """Play the session that the server describes in `view`."""
        self._shop = shop
        self._view = view
        self.task, self.task_id, self.task_type = (
            str(view[name]) for name in ("task", "task_id", "task_type")
        )
        self._modes = list(view["observation"])
        self._path = f"/api/sessions/{view['session_id']}"
        # At the end of the program, the server's idle time closes the session.
        weakref.finalize(self, shop.left.append, view["session_id"]).atexit = False

    @property
    def admissible(self) -> list[str]:
        """The admissible actions."""
        return list(self._view["admissible_actions"])

    def observe(self, mode: str = "text") -> str:
        """Return the page in a mode, which the server then sends with each answer."""
        if mode not in self._view["observation"]:
            self._modes.append(mode)
            path = f"{self._path}?modes={','.join(self._modes)}"
            self._view = self._shop.connection.ask("GET", path)
        return str(self._view["observation"][mode])

    def act(self, action: str) -> ActionResult:
        """Carry out an action; raises ServerError, also when the session was idle for too long."""
        body = {"action": action, "step": self._view["step"], "modes": self._modes}
        self._view = answer = self._shop.connection.ask("POST", f"{self._path}/actions", body)
        result = {field.name: answer[field.name] for field in fields(ActionResult)}
        score = None if answer["score"] is None else Reward(**answer["score"])
        return ActionResult(**{**result, "score": score})

    def __deepcopy__(self, memo: dict[int, object]) -> RemotePlay:
        return self._shop.open(f"{self._path}/copies", {"modes": self._modes})
