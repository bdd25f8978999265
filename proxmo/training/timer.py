"""How long each phase of an iteration took."""

from __future__ import annotations

import time
from collections.abc import Callable


class PhaseTimer:
    """Measures named phases that follow each other; a phase ends when the next one starts.

    Attributes:
        seconds: length of each phase that has ended, by name.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._phase: str | None = None
        self._started = 0.0
        self.seconds: dict[str, float] = {}

    def start(self, phase: str) -> None:
        """Ends the phase under way and starts another one."""
        self.stop()
        self._phase = phase

    def stop(self) -> None:
        """Ends the phase under way, if there is one."""
        now = self._clock()
        if self._phase is not None:
            self.seconds[self._phase] = self.seconds.get(self._phase, 0.0) + now - self._started
        self._phase, self._started = None, now
