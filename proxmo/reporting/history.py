"""The metrics of a run so far, and an estimate of the time left."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping

# train/success_rate_<task type>, apart from the two ends of the interval.
_TASK_TYPE = re.compile(r"train/success_rate_(?!low$|high$)(.+)")
# One iteration plays few tasks of a type, so displays show a mean over so many.
RECENT = 10


class History:
    """Collects the metrics of a run's iterations as series, one per key."""

    def __init__(
        self, minutes: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Start the clock; `minutes` is the time budget of the run, if it has one."""
        self._clock = clock
        self._started = clock()
        self._last_iteration_at = self._started
        self._budget = math.inf if minutes is None else 60 * minutes
        self._durations: list[float] = []
        self.series: dict[str, list[float]] = {}
        self.iteration = 0
        self.total = 0

    def record(self, metrics: Mapping[str, float], iteration: int, total: int) -> None:
        """Add the metrics of one iteration; values that are not finite are left out."""
        self.iteration, self.total = iteration, total
        for key, value in metrics.items():
            if math.isfinite(value):
                self.series.setdefault(key, []).append(float(value))
        now = self._clock()
        self._durations.append(metrics.get("time/iteration_s", now - self._last_iteration_at))
        self._last_iteration_at = now

    def latest(self, key: str) -> float | None:
        """Return the newest value of a metric; None if there is none."""
        values = self.series.get(key)
        return values[-1] if values else None

    def task_types(self) -> dict[str, list[float]]:
        """Return the success rates by task type, in alphabetical order."""
        found = {}
        for key in sorted(self.series):
            if match := _TASK_TYPE.fullmatch(key):
                found[match[1]] = self.series[key]
        return found

    def elapsed(self) -> float:
        """Return the seconds since the start."""
        return self._clock() - self._started

    def time_left(self) -> float | None:
        """Return the estimated seconds to the end; None before the first iteration."""
        if not self._durations:
            return None
        recent = self._durations[-RECENT:]
        pace = sum(recent) / len(recent)
        under_way = self._clock() - self._last_iteration_at
        left = max(0.0, (self.total - self.iteration) * pace - under_way)
        return min(left, max(0.0, self._budget - self.elapsed()))


def recent_mean(values: list[float]) -> float:
    """Return the mean of the newest values of a series that is not empty."""
    recent = values[-RECENT:]
    return sum(recent) / len(recent)
