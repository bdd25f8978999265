"""Progress as plain lines, for a log file or a pipe: one line per iteration, no colour."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from proxmo.formats import count, duration, interval, percent
from proxmo.listener import Listener
from proxmo.reporting.history import History, recent_mean

# Seconds between two lines of the same phase.
PHASE_EVERY_S = 15.0

# key, label, format
COLUMNS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("train/return_mean", "return", "{:.3f}".format),
    ("train/episode_length_steps", "episode steps", "{:.1f}".format),
    ("train/invalid_action_share", "invalid actions", percent),
    ("loss/kl", "KL", "{:.4f}".format),
    ("loss/entropy", "entropy", "{:.3f}".format),
    ("loss/clip_fraction", "clip fraction", "{:.3f}".format),
    ("speed/tokens_per_s", "tokens/s", count),
)


class PlainLines(Listener):
    """Writes the progress to a text stream, line by line."""

    def __init__(
        self,
        stream: TextIO,
        history: History | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Write to `stream`; `history` may come with a time budget."""
        self._stream = stream
        self._history = history or History(clock=clock)
        self._clock = clock
        self._said: set[str] = set()
        self._said_at = 0.0

    def phase(
        self,
        name: str,
        *,
        done: int | None = None,
        total: int | None = None,
        text: str = "",
        **details: Any,
    ) -> None:
        """Write a new phase, and from time to time one that takes long."""
        if name in self._said and self._clock() - self._said_at < PHASE_EVERY_S:
            return
        self._said.add(name)
        share = f"{done}/{total}" if total else "" if done is None else str(done)
        self._write("  ".join(part for part in (name, share, text) if part))

    def iteration(self, metrics: Mapping[str, float], iteration: int, total: int) -> None:
        """Write the line of an iteration."""
        self._history.record(metrics, iteration, total)
        self._write(iteration_line(self._history, metrics))

    def evaluation(self, summary: Mapping[str, Any]) -> None:
        """Write the line of an evaluation."""
        self._write(evaluation_line(summary))

    def message(self, text: str) -> None:
        """Write a message as it is."""
        self._write(text)

    def _write(self, line: str) -> None:
        self._said_at = self._clock()
        self._stream.write(f"{line}\n")
        self._stream.flush()


def iteration_line(history: History, metrics: Mapping[str, float]) -> str:
    """Write the measured metrics of the newest iteration in one line."""
    parts = [f"iteration {history.iteration}/{history.total}"]
    if (success := success_text(metrics)) is not None:
        parts.append(f"success {success}")
    for key, label, write in COLUMNS:
        if math.isfinite(value := metrics.get(key, math.nan)):
            parts.append(f"{label} {write(value)}")
    if (left := history.time_left()) is not None:
        parts.append(f"left {duration(left)}")
    types = history.task_types()
    if types:
        rates = (f"{name} {percent(recent_mean(values))}" for name, values in types.items())
        parts.append(f"by type: {', '.join(rates)}")
    return "  ".join(parts)


def success_text(metrics: Mapping[str, float]) -> str | None:
    """Write the success rate of an iteration with its interval; None if not measured."""
    rate = metrics.get("train/success_rate")
    if rate is None:
        return None
    low, high = metrics.get("train/success_rate_low"), metrics.get("train/success_rate_high")
    if low is None or high is None:
        return percent(rate)
    return f"{percent(rate)} {interval(low, high)}"


def evaluation_line(summary: Mapping[str, Any]) -> str:
    """Write the result of an evaluation in one line."""
    line = f"evaluation on {summary['split']}: success {percent(summary['success_rate'])}"
    line += f" {interval(summary['low'], summary['high'])}, {summary['episodes']} episodes"
    return line + (f", {summary['errors']} errors" if summary.get("errors") else "")
