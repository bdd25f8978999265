"""How training and evaluation report their progress.

The library calls a listener and never prints. The base class ignores everything, so a listener
overrides only what it shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Listener:
    """Hears about the progress of a run, in the thread that does the work."""

    def phase(
        self,
        name: str,
        *,
        done: int | None = None,
        total: int | None = None,
        text: str = "",
        **details: Any,
    ) -> None:
        """Reports a phase outside iterations: warm start, evaluation, saving, ...

        Args:
            name: of the phase, in words; a call with another name ends the phase before.
            done: finished part, in the phase's own unit.
            total: the whole; None if unknown.
            text: the state, for example "loss 0.31".
            details: further values of the phase that a display may leave out.
        """

    def iteration(self, metrics: Mapping[str, float], iteration: int, total: int) -> None:
        """Reports that iteration `iteration` (from 1) ended; docs/metrics.md lists the keys."""

    def evaluation(self, summary: Mapping[str, Any]) -> None:
        """Reports that an evaluation ended; `summary` is `Evaluation.to_json`."""

    def message(self, text: str) -> None:
        """Reports something that a person should read."""

    def close(self) -> None:
        """Ends the reports; a display releases the terminal."""
