"""Ctrl-C: the first asks the trainer to stop after its current step, the second stops at once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from types import FrameType, TracebackType

# SIGTERM is how schedulers announce that the machine is taken away: the same wish as a Ctrl-C.
STOPPING = (signal.SIGINT, signal.SIGTERM)


class GracefulStop:
    """Turns the first signal into a call while the `with` block runs."""

    def __init__(
        self,
        request_stop: Callable[[], None],
        say: Callable[[str], None],
        signals: Iterable[int] = STOPPING,
    ) -> None:
        """Call `request_stop` at the first of the signals and tell the person at the terminal."""
        self._signals = tuple(signals)
        self._request_stop = request_stop
        self._say = say
        self._previous: dict[int, object] = {}
        self.requested = False

    def __enter__(self) -> GracefulStop:
        """Take over the signals."""
        for number in self._signals:
            self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the signals back."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        self._request_stop()
        self._say("stopping after this step and saving; Ctrl-C again stops at once")
