"""GiGPO (arXiv 2505.10978): GRPO plus a comparison of the steps that start from one state."""

from __future__ import annotations

import numpy as np

from proxmo.credit.explain import step_group_list
from proxmo.credit.matching import similarities, step_groups
from proxmo.credit.registry import Neighbour, Parts, method
from proxmo.credit.rows import Rows
from proxmo.credit.statistics import check_choice, relative_to_group


@method("gigpo")
def gigpo(
    rows: Rows,
    *,
    omega: float = 1.0,
    norm: str = "zscore",
    similarity: float | None = None,
    matcher: str = "difflib",
    weighting: str = "episodes",
) -> Parts:
    """A = A_E + omega A_S, A_S = (G_t - mean) / (std + eps) in the step group; 0 for one alone.

    Args:
        rows: the steps, with states.
        omega: weight of the step part.
        norm: "zscore" or "mean" (no division), in both parts.
        similarity: None groups identical states of a task; a number those at least that similar.
        matcher: what similarity is: "difflib" (ratio of matching characters, as released) or an
            embedding's name (cosine).
        weighting: "episodes" counts an episode once in the mean of its group; "steps" as often as
            it has steps, as released.
    """
    check_choice("weighting", weighting, ("episodes", "steps"))
    lengths = np.bincount(rows.episode).astype(np.float64) if weighting == "steps" else None
    relative = relative_to_group(
        rows.episode_return, rows.episode_group, norm, scale=rows.episode_scale, weight=lengths
    )
    step_group = step_groups(rows, similarity, matcher)
    diagnostics = {}
    if len(step_group):
        diagnostics["credit/step_group_size"] = float(np.bincount(step_group)[step_group].mean())

    def explain(row: int) -> list[Neighbour]:
        members = np.flatnonzero(step_group == step_group[row])
        return step_group_list(rows, members, similarities(rows, row, members, matcher))

    return Parts(
        episode=relative[rows.episode],
        step=relative_to_group(rows.step_return, step_group, norm, scale=rows.step_scale()),
        omega=omega,
        diagnostics=diagnostics,
        neighbours=explain,
    )
