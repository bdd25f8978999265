"""ProxMO (arXiv 2602.19225): modulated episode advantages and soft, proximity-weighted step baselines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.proximity import ProximityIndex, softmax_weights
from proxmo.credit.registry import Parts, method
from proxmo.credit.rows import Rows
from proxmo.credit.states import collapse
from proxmo.credit.statistics import check_choice, group_mean, relative_to_group, without_variance
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
    """A = w(R, p) Z + omega (G_t - B_t)."""
    check_choice("scope", scope, ("group", "batch"))
    check_choice("exclude", exclude, ("none",))
    episode = relative_to_group(
        rows.episode_return, rows.episode_group, norm, scale=rows.episode_scale
    )
    diagnostics: dict[str, float] = {}
    if modulation:
        rate = group_mean(rows.episode_success.astype(np.float64), rows.episode_group)
        weight = modulation_weight(rows.episode_success, rate[rows.episode_group], alpha, beta)
        episode = weight * episode
        diagnostics["credit/modulation_mean"] = float(weight.mean()) if len(weight) else 1.0
    step = np.zeros(len(rows.reward))
    if aggregation:
        pool = rows.group if scope == "group" else np.zeros_like(rows.group)
        step, effective = _soft_advantage(rows, pool, embedding, tau, top_k)
        diagnostics["credit/effective_neighbours"] = effective
    return Parts(episode[rows.episode], step, omega, diagnostics)


def modulation_weight(
    success: NDArray[np.bool_], rate: Floats, alpha: float = 4.0, beta: float = 0.1
) -> Floats:
    """Success-rate-aware weight w(R, p) = 1 + beta f(R, p), paper Eq. 6.

    f(success) = [sigmoid((1-p)^alpha) - 1/2] / [2 (sigmoid(1) - 1/2)], f(failure) = -[sigmoid(p^alpha) - 1/2] / [same]: a
    rare success counts more, a rare failure less; both within beta/2 of 1.

    Args:
        success: (E,) the environment's flag.
        rate: (E,) success rate p of the episode's group, in [0, 1].
        alpha: how fast the weight falls to 1 as the outcome becomes common, > 0.
        beta: width of the range of weights.

    Returns:
        (E,) weights in [1 - beta/2, 1 + beta/2].
    """
    if alpha <= 0:
        raise ConfigError(f"alpha is {alpha}; expected a number above 0")
    rarity = np.where(success, 1.0 - rate, rate) ** alpha
    # sigmoid(x) - 1/2 = tanh(x/2) / 2, without the loss of digits at small x.
    size = np.tanh(rarity / 2) / (2 * np.tanh(0.5))
    return 1.0 + beta * np.where(success, size, -size)


def _soft_advantage(
    rows: Rows, pool: NDArray[np.int64], embedding: str, tau: float, top_k: int | None
) -> tuple[Floats, float]:
    if tau <= 0:
        raise ConfigError(f"tau is {tau}; expected a number above 0")
    if not len(rows.reward):
        return np.zeros(0), 0.0
    nodes = collapse(rows.state, pool)
    # Deviations from the pool's mean instead of returns: a pool of equal returns then gives exactly 0.
    deviation = relative_to_group(rows.step_return, pool, "mean")
    times = np.bincount(nodes.of_row).astype(np.float64)
    mean = np.bincount(nodes.of_row, weights=deviation) / times
    baseline, effective = np.zeros(len(times)), np.ones(len(times))
    for found in ProximityIndex(nodes, embedding=embedding, top_k=top_k).search():
        count = times[found.ids]
        weight = softmax_weights(found.similarity, count, tau)
        baseline[found.query] = (weight * mean[found.ids]).sum(1)
        effective[found.query] = 1.0 / (weight**2 / count).sum(1)
    step = deviation - baseline[nodes.of_row]
    step[without_variance(rows.step_return, pool)[pool]] = 0.0
    return step, float(effective[nodes.of_row].mean())
