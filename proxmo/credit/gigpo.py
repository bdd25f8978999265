"""GiGPO (arXiv 2505.10978): GRPO plus a comparison of the steps that start from one state."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from annotated_types import Gt, Le

from proxmo.credit.matching import StepGroups
from proxmo.credit.options import Decay, Norm
from proxmo.credit.registry import Neighbour, Parts, method
from proxmo.credit.rows import Rows
from proxmo.credit.statistics import relative_to_group


@method("gigpo")
def gigpo(
    rows: Rows,
    *,
    omega: float = 1.0,
    norm: Norm = "zscore",
    similarity: Annotated[float, Gt(0), Le(1)] | None = None,
    matcher: str = "difflib",
    history: Decay = 0.0,
    weighting: Literal["episodes", "steps"] = "episodes",
) -> Parts:
    """A = A_E + omega A_S, A_S = (G_t - mean) / (std + eps) in the step group; 0 for one alone.

    Args:
        rows: the steps, with states.
        omega: weight of the step part.
        norm: "zscore" or "mean" (no division), in both parts.
        similarity: None groups identical states of a task; a number those at least that similar.
        matcher: what similarity is: "difflib" (ratio of matching characters, as released) or an
            embedding's name (cosine).
        history: decay of earlier observations in an embedding (see ProximityIndex).
        weighting: "episodes" counts an episode once in the mean of its group; "steps" as often as
            it has steps, as released.
    """
    lengths = np.bincount(rows.episode).astype(np.float64) if weighting == "steps" else None
    relative = relative_to_group(
        rows.episode_return, rows.episode_group, norm, scale=rows.episode_scale, weight=lengths
    )
    groups = StepGroups(rows, similarity, matcher, history)
    diagnostics = {}
    if len(rows.reward):
        size = np.bincount(groups.of_row)[groups.of_row]
        diagnostics["credit/step_group_size"] = float(size.mean())

    def explain(row: int) -> list[Neighbour]:
        members = np.flatnonzero(groups.of_row == groups.of_row[row])
        return [
            Neighbour(
                row=int(rows.source[member]),
                similarity=float(similarity),
                weight=1.0 / len(members),
                step_return=float(rows.step_return[member]),
                count=1,
                text=rows.text(int(member)),
            )
            for member, similarity in zip(members, groups.similarities(row, members), strict=True)
        ]

    return Parts(
        episode=relative[rows.episode],
        step=relative_to_group(rows.step_return, groups.of_row, norm, scale=rows.step_return_scale),
        omega=omega,
        diagnostics=diagnostics,
        neighbours=explain,
    )
