"""Log of the actions of shoppers: one file of JSON lines for each session."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from webshop_server.session import ActionResult, Session


class TrajectoryLog:
    """Writes DIR/<session id>.jsonl: a line for the task, then one for each action."""

    def __init__(self, directory: Path | None) -> None:
        """Write into a directory, made when it is missing; None writes nothing."""
        self._directory = directory
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)

    def start(self, token: str, session: Session, **more: Any) -> None:
        """Write the first line of a session."""
        task = {"task_id": session.task_id, "task": session.task, **more}
        self._write(token, "start", session, profile=session.shop.profile, **task)

    def act(
        self, token: str, step: int, action: str, result: ActionResult, session: Session
    ) -> None:
        """Write an action, what it did and the page it led to."""
        done = {**asdict(result), "score": result.score and dict(result.score.info)}
        self._write(token, "action", session, step=step, action=action, **done)

    def _write(self, token: str, event: str, session: Session, **values: Any) -> None:
        if self._directory is None:
            return
        line = {"time": time.time(), "event": event, **values, "page": session.observe("text")}
        # Opened for each line: sessions end without notice, and any worker may write the next.
        # JSON keeps half characters, which UTF-8 does not know, as escapes.
        path = self._directory / f"{token}.jsonl"
        with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
