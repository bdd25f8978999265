"""Why a step got its advantage: its return, its baseline, the neighbours that made it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.aggregation import softmax_weights
from proxmo.credit.proximity import ProximityIndex
from proxmo.credit.registry import Neighbour, Parts
from proxmo.credit.rows import Rows

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The credit of one step, taken apart.

    Attributes:
        row: the caller's row.
        text: its observation, when states are text.
        episode_return: undiscounted return of its episode.
        success: whether the episode succeeded.
        success_rate: share of successful episodes in the group.
        group_size: episodes in the group.
        step_return: G_t.
        baseline: what G_t is compared with, B_t; None when the method does not compare steps.
        episode_advantage: episode part.
        modulation: weight inside it; None when the method has none.
        step_advantage: step part before omega.
        omega: weight of the step part.
        penalty: what the caller subtracted.
        advantage: episode_advantage + omega step_advantage - penalty.
        neighbours: states the baseline came from, the heaviest first.
    """

    row: int
    text: str | None
    episode_return: float
    success: bool
    success_rate: float
    group_size: int
    step_return: float
    baseline: float | None
    episode_advantage: float
    modulation: float | None
    step_advantage: float
    omega: float
    penalty: float
    advantage: float
    neighbours: tuple[Neighbour, ...]


def explain_row(rows: Rows, parts: Parts, row: int) -> Explanation:
    """Take the advantage of the caller's `row` apart."""
    place = int(rows.expand[row])
    episode = rows.episode[place]
    group = rows.episode_group == rows.episode_group[episode]
    neighbours = parts.neighbours(place) if parts.neighbours else []
    baseline = sum(one.weight * one.step_return for one in neighbours) if neighbours else None
    return Explanation(
        row=row,
        text=rows.text(place),
        episode_return=float(rows.episode_return[episode]),
        success=bool(rows.episode_success[episode]),
        success_rate=float(rows.episode_success[group].mean()),
        group_size=int(group.sum()),
        step_return=float(rows.step_return[place]),
        baseline=baseline,
        episode_advantage=float(parts.episode[place]),
        modulation=None if parts.modulation is None else float(parts.modulation[place]),
        step_advantage=float(parts.step[place]),
        omega=parts.omega,
        penalty=float(np.broadcast_to(parts.penalty, len(rows.reward))[place]),
        advantage=float(parts.advantage[place]),
        neighbours=tuple(sorted(neighbours, key=lambda one: -one.weight)),
    )


def neighbour_list(
    index: ProximityIndex, rows: Rows, row: int, *, tau: float, exclude: str = "none"
) -> list[Neighbour]:
    """The states whose steps make the soft baseline of a row, as `soft_baselines` weighs them."""
    nodes = index.nodes
    ids, similarity = index.similar(int(nodes.of_row[row]), spare=int(exclude != "none"))
    left_out = rows.episode == rows.episode[row]
    if exclude != "episode":
        left_out = (np.arange(len(left_out)) == row) & (exclude == "self")
    kept = np.flatnonzero(~left_out)
    size = len(nodes.pool)
    count = np.bincount(nodes.of_row[kept], minlength=size)
    total = np.bincount(nodes.of_row[kept], weights=rows.step_return[kept], minlength=size)
    weight = softmax_weights(similarity, count[ids].astype(np.float64), tau)
    return [
        Neighbour(
            row=int(rows.source[nodes.row[node]]),
            similarity=float(alike),
            weight=float(share),
            step_return=float(total[node] / count[node]),
            count=int(count[node]),
            text=rows.text(int(nodes.row[node])),
        )
        for node, alike, share in zip(ids, similarity, weight, strict=True)
        if count[node]
    ]
