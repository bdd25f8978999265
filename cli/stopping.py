"""Ctrl-C: the first asks the trainer to stop after its current step, the second stops at once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

# SIGTERM is how schedulers announce that the machine is taken away: the same wish as a Ctrl-C.
STOPPING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def graceful_stop(
    request_stop: Callable[[], None],
    say: Callable[[str], None],
    signals: Iterable[int] = STOPPING,
) -> Iterator[Callable[[], bool]]:
    """Call `request_stop` at the first of the signals while the block runs, and say so.

    Gives a function that returns whether a signal came.
    """
    requested = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal requested
        if requested:
            raise KeyboardInterrupt
        requested = True
        request_stop()
        say("stopping after this step and saving; Ctrl-C again stops at once")

    previous = {number: signal.signal(number, on_signal) for number in signals}
    try:
        yield lambda: requested
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
