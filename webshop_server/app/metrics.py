"""Counters of a server in the text form of Prometheus, over all its workers.

Where `PROMETHEUS_MULTIPROC_DIR` was set before this module was imported (as `serve` does for
several workers), the library keeps the numbers in that directory, and any worker answers for all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, Summary, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

DIRECTORY_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


class Metrics(Collector):
    """The counters of a server; as a collector, the number of open sessions."""

    def __init__(self, open_sessions: Callable[[], int]) -> None:
        """Count from 0; `open_sessions` is called whenever the numbers are read."""
        self._own = CollectorRegistry()
        self._open_sessions = open_sessions
        self.requests = Histogram(
            "webshop_request_seconds",
            "Time to answer a request.",
            ("route", "status"),
            buckets=_SECONDS,
            registry=self._own,
        )
        self.started = self._counter("webshop_sessions_started", "Sessions opened.")
        self.refused = self._counter("webshop_sessions_refused", "Sessions refused over the cap.")
        self.closed = self._counter("webshop_sessions_closed", "Sessions closed by a client.")
        self.actions = self._counter("webshop_actions", "Actions that did something.")
        self.invalid = self._counter("webshop_actions_invalid", "Actions that did nothing.")
        self.scores = Summary(
            "webshop_purchase_score", "Scores of the purchases.", registry=self._own
        )

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(name, text, registry=self._own)

    def text(self) -> bytes:
        """Return all numbers, of all workers."""
        registry = self._own
        if DIRECTORY_VARIABLE in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)
        sessions = CollectorRegistry()
        sessions.register(self)
        return generate_latest(registry) + generate_latest(sessions)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Ask the store, because no worker counts the sessions that expire."""
        yield GaugeMetricFamily(
            "webshop_sessions_open", "Sessions open now.", self._open_sessions()
        )
