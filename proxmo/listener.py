"""What a long piece of work (training, evaluation) says while it runs.

The library calls a listener and never prints. This base class ignores everything, so that a
listener only overrides what it shows, and the library never has to ask whether there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Listener:
    """Hears the progress of a run, from the thread that does the work."""

    def phase(
        self,
        name: str,
        *,
        done: int | None = None,
        total: int | None = None,
        text: str = "",
        **details: Any,
    ) -> None:
        """Work that is not an iteration is under way: warm start, evaluation, saving, ...

        Args:
            name: what is being done, in words; a call with another name ends the phase before.
            done: how much of it is done, in the phase's own unit.
            total: how much there is; None when that is not known.
            text: how it stands, for example "loss 0.31".
            details: further values of the phase that a display may leave out.
        """

    def iteration(self, metrics: Mapping[str, float], iteration: int, total: int) -> None:
        """Iteration `iteration` (from 1) of `total` is over; keys are those of docs/metrics.md."""

    def evaluation(self, summary: Mapping[str, Any]) -> None:
        """An evaluation is over; `summary` is what `Evaluation.to_json` gives."""

    def message(self, text: str) -> None:
        """Something happened that a person should read."""

    def close(self) -> None:
        """Nothing more will come; a display gives the terminal back."""
