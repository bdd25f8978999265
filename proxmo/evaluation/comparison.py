"""Compares two players on the same panel, task by task."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import mean
from typing import Any

import numpy as np

from proxmo.errors import UsageError
from proxmo.evaluation.results import Recorded, Result
from proxmo.evaluation.statistics import bootstrap_interval, mcnemar


@dataclass(frozen=True, slots=True)
class Difference:
    """A rate of two players and what the second adds; bounds hold with 95 % (paired bootstrap)."""

    tasks: int
    first: float
    second: float
    difference: float
    low: float
    high: float

    @classmethod
    def of(cls, pairs: Mapping[str, tuple[float, float]], rng: np.random.Generator) -> Difference:
        """Resamples the tasks, of which there is at least one."""
        first, second = (mean(side) for side in zip(*pairs.values(), strict=True))
        low, high = bootstrap_interval([b - a for a, b in pairs.values()], rng)
        return cls(len(pairs), first, second, second - first, low, high)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two evaluations of one panel, over the tasks that both could score.

    `p_value` is the exact McNemar test's, of the tasks that only one side won; None where tasks
    were played several times, as it takes one outcome per task and side.
    """

    panel: str
    panel_hash: str
    first: str
    second: str
    left_out: int
    success: Difference
    score: Difference
    by_task_type: dict[str, Difference]
    only_first: int
    only_second: int
    p_value: float | None

    def to_json(self) -> dict[str, Any]:
        """Plain data, ready for `json.dumps`."""
        return dataclasses.asdict(self)


def compare(first: Recorded, second: Recorded) -> Comparison:
    """Compares two evaluations; a task that was played several times counts with its mean.

    Raises:
        UsageError: they are not of the same panel, or share no scored task.
    """
    panels = [one.settings["panel"] for one in (first, second)]
    if panels[0]["hash"] != panels[1]["hash"]:
        described = [f"{p['name']} (sha256 {p['hash'][:12]})" for p in panels]
        raise UsageError(
            f"{first.path} was measured on the panel {described[0]}, {second.path} on "
            f"{described[1]}: rates on different tasks cannot be compared; evaluate both with the "
            "same --panel"
        )
    sides = [_by_task(one.results) for one in (first, second)]
    both = [task for task in sides[0] if task in sides[1]]
    if not both:
        raise UsageError(f"{first.path} and {second.path} have no scored task in common")
    rng = np.random.default_rng(0)
    won = {t: (_mean(sides[0][t], "won"), _mean(sides[1][t], "won")) for t in both}
    score = {t: (_mean(sides[0][t], "score"), _mean(sides[1][t], "score")) for t in both}
    only = sum(a > b for a, b in won.values()), sum(b > a for a, b in won.values())
    single = all(len(side[task]) == 1 for side in sides for task in both)
    kinds = sorted({sides[0][task][0].task_type for task in both})
    return Comparison(
        panel=panels[0]["name"],
        panel_hash=panels[0]["hash"],
        first=str(first.path),
        second=str(second.path),
        left_out=panels[0]["tasks"] - len(both),
        success=Difference.of(won, rng),
        score=Difference.of(score, rng),
        by_task_type={
            kind: Difference.of(
                {t: pair for t, pair in won.items() if sides[0][t][0].task_type == kind}, rng
            )
            for kind in kinds
        },
        only_first=only[0],
        only_second=only[1],
        p_value=mcnemar(*only) if single else None,
    )


def _by_task(results: list[Result]) -> dict[str, list[Result]]:
    found: dict[str, list[Result]] = {}
    for result in sorted(results, key=lambda r: r.key):
        if result.scored:
            found.setdefault(result.task_id, []).append(result)
    return found


def _mean(results: list[Result], quantity: str) -> float:
    return float(mean(float(getattr(result, quantity)) for result in results))
