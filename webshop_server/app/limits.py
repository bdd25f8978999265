"""Bounds on number and idle time of a server's sessions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the sessions of a server.

    Attributes:
        sessions: largest number of open sessions.
        idle_s: seconds without a request after which a session expires.
    """

    sessions: int = 1000
    idle_s: float = 1800.0
