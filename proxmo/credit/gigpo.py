"""GiGPO (arXiv 2505.10978): GRPO plus a comparison of the steps that start from the same state."""

from __future__ import annotations

import numpy as np

from proxmo.credit.matching import step_groups
from proxmo.credit.registry import Parts, method
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
    """A = A_E + omega A_S, A_S = (G_t - mean) / (std + eps) inside the step group, 0 when it has one step.

    Args:
        rows: the steps, with states.
        omega: weight of the step part.
        norm: "zscore" or "mean", in both parts.
        similarity: None groups identical states of a task; a number groups states at least that similar.
        matcher: what similarity means: "difflib" (ratio of matching characters, as released) or the name of an embedding
            (cosine).
        weighting: "episodes" counts each episode once in the group's mean; "steps" as often as it has steps, as released.
    """
    check_choice("weighting", weighting, ("episodes", "steps"))
    steps = np.bincount(rows.episode).astype(np.float64) if weighting == "steps" else None
    relative = relative_to_group(
        rows.episode_return, rows.episode_group, norm, scale=rows.episode_scale, weight=steps
    )
    step_group = step_groups(rows, similarity, matcher)
    step = relative_to_group(rows.step_return, step_group, norm)
    sizes = np.bincount(step_group)[step_group] if len(step_group) else np.zeros(0)
    return Parts(
        episode=relative[rows.episode],
        step=step,
        omega=omega,
        diagnostics={"credit/step_group_size": float(sizes.mean()) if len(sizes) else 0.0},
    )
