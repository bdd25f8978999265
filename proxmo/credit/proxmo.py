"""ProxMO (arXiv 2602.19225): rare outcomes count more, steps against like steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.aggregation import check_aggregation, soft_baselines
from proxmo.credit.embeddings import check_embedding
from proxmo.credit.explain import neighbour_list
from proxmo.credit.proximity import ProximityIndex, check_top_k
from proxmo.credit.registry import Parts, method
from proxmo.credit.rows import Rows
from proxmo.credit.statistics import (
    check_choice,
    group_mean,
    relative_to_group,
    without_variance,
)
from proxmo.errors import ConfigError

Floats = NDArray[np.float64]


@method("proxmo")
def proxmo(
    rows: Rows,
    *,
    alpha: float = 4.0,
    beta: float = 0.1,
    tau: float = 0.1,
    omega: float = 1.0,
    norm: str = "zscore",
    modulation: bool = True,
    aggregation: bool = True,
    embedding: str = "tfidf",
    scope: str = "group",
    exclude: str = "none",
    top_k: int | None = None,
) -> Parts:
    """A = w(R, p) Z + omega (G_t - B_t).

    Z is the GRPO advantage of the episode, w the modulation weight at the success rate p of its
    group, B_t the mean return of steps weighted by the similarity of their states.

    Args:
        rows: the steps, with states.
        alpha: how fast the modulation fades as an outcome becomes common, > 0.
        beta: width of the range of modulation weights.
        tau: temperature of the similarity softmax, > 0.
        omega: weight of the step part.
        norm: "zscore" or "mean", of the episode part.
        modulation: False leaves w at 1 (ablation).
        aggregation: False leaves the step part at 0 (ablation).
        embedding: of the states: tfidf, hash, sentence:<model or path>, module:name.
        scope: steps that are compared: those of the "group", or of the whole "batch".
        exclude: steps left out of the baseline: "none" (the paper's), "self", "episode".
        top_k: most neighbours per state; None takes all (see ProximityIndex).
    """
    # All of them, also those of a part that is off: a slip would show only when it is on.
    check_modulation(alpha, beta)
    check_aggregation(tau, exclude)
    check_choice("scope", scope, ("group", "batch"))
    check_embedding(embedding)
    check_top_k(top_k)
    episode = relative_to_group(
        rows.episode_return, rows.episode_group, norm, scale=rows.episode_scale
    )
    diagnostics: dict[str, float] = {}
    of_step: Floats | None = None
    if modulation:
        rate = group_mean(rows.episode_success.astype(np.float64), rows.episode_group)
        weight = modulation_weight(rows.episode_success, rate[rows.episode_group], alpha, beta)
        episode = weight * episode
        of_step = weight[rows.episode]
        diagnostics |= _modulation_diagnostics(weight)
    step = np.zeros(len(rows.reward))
    if not aggregation:
        return Parts(episode[rows.episode], step, omega, diagnostics, modulation=of_step)

    pool = rows.group if scope == "group" else np.zeros_like(rows.group)
    index = ProximityIndex(rows.state, pool, embedding=embedding, top_k=top_k)
    # Deviations from the pool's mean stand for returns: equal returns then give exactly 0.
    value = relative_to_group(rows.step_return, pool, "mean")
    baselines = soft_baselines(index, value, rows.episode, tau=tau, exclude=exclude)
    step = value - baselines.value
    if len(step):
        step[without_variance(rows.step_return, pool)[pool]] = 0.0
        diagnostics["credit/effective_neighbours"] = float(baselines.neighbours.mean())
        diagnostics["credit/top_k_cut_mean"] = float(baselines.cut.mean())
        diagnostics["credit/top_k_cut_max"] = float(baselines.cut.max())
        if index.recalls:
            diagnostics["credit/search_recall"] = float(np.mean(index.recalls))
    return Parts(
        episode=episode[rows.episode],
        step=step,
        omega=omega,
        diagnostics=diagnostics,
        neighbours=lambda row: neighbour_list(index, rows, row, tau=tau, exclude=exclude),
        modulation=of_step,
    )


def modulation_weight(
    success: NDArray[np.bool_], rate: Floats, alpha: float = 4.0, beta: float = 0.1
) -> Floats:
    """Success-rate-aware weight w(R, p) = 1 + beta f(R, p), paper Eq. 6.

    f(success, p) = [sigmoid((1-p)^alpha) - 1/2] / [2 (sigmoid(1) - 1/2)],
    f(failure, p) = -[sigmoid(p^alpha) - 1/2] / [2 (sigmoid(1) - 1/2)]: a rare success counts more,
    a rare failure less.

    Args:
        success: (E,) the environment's flag.
        rate: (E,) success rate p of the episode's group, in [0, 1].
        alpha: how fast the weight returns to 1 as the outcome becomes common, > 0.
        beta: width of the range of weights.

    Returns:
        (E,) weights in [1 - beta/2, 1 + beta/2].

    Raises:
        ConfigError: alpha or beta out of range.
    """
    check_modulation(alpha, beta)
    rarity = np.where(success, 1.0 - rate, rate) ** alpha
    # sigmoid(x) - 1/2 = tanh(x / 2) / 2, which keeps its digits at small x.
    size = np.tanh(rarity / 2) / (2 * np.tanh(0.5))
    return 1.0 + beta * np.where(success, size, -size)


def check_modulation(alpha: float, beta: float) -> None:
    """Raise ConfigError for an alpha or a beta out of range."""
    if not alpha > 0:
        raise ConfigError(f"alpha is {alpha}; expected a number above 0")
    if not 0 <= beta < 2:
        raise ConfigError(f"beta is {beta}; expected a number from 0 to below 2")


def _modulation_diagnostics(weight: Floats) -> dict[str, float]:
    if not len(weight):
        return {}
    return {
        "credit/modulation_mean": float(weight.mean()),
        "credit/modulation_min": float(weight.min()),
        "credit/modulation_max": float(weight.max()),
    }
