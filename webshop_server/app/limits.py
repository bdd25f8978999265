"""How many sessions a server keeps, and for how long."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the sessions of a server.

    Attributes:
        sessions: the most open at a time.
        idle_s: seconds without a request after which a session is gone.
    """

    sessions: int = 1000
    idle_s: float = 1800.0
