"""ProxMO (arXiv 2602.19225): rare outcomes count more, steps against like steps."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from annotated_types import Ge, Lt
from numpy.typing import NDArray

from proxmo.credit.aggregation import Baselines, soft_baselines
from proxmo.credit.embeddings import check_embedding
from proxmo.credit.explain import neighbour_list
from proxmo.credit.options import Count, Decay, Exclude, Norm, Positive, Scope
from proxmo.credit.proximity import ProximityIndex
from proxmo.credit.registry import Parts, method
from proxmo.credit.rows import Rows
from proxmo.credit.statistics import group_mean, relative_to_group, without_variance

Floats = NDArray[np.float64]
# Width of the range of modulation weights: at 2 a failure could weigh nothing.
Width = Annotated[float, Ge(0), Lt(2)]


@method("proxmo")
def proxmo(
    rows: Rows,
    *,
    alpha: Positive = 4.0,
    beta: Width = 0.1,
    tau: Positive = 0.1,
    omega: float = 1.0,
    norm: Norm = "zscore",
    modulation: bool = True,
    aggregation: bool = True,
    embedding: str = "tfidf",
    history: Decay = 0.0,
    scope: Scope = "group",
    exclude: Exclude = "none",
    top_k: Count | None = None,
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
        history: decay of earlier observations in the embedding (see ProximityIndex); 0 is off.
        scope: steps that are compared: those of the "group", or of the whole "batch".
        exclude: steps left out of the baseline: "none" (the paper's), "self", "episode".
        top_k: most neighbours per state, found by FAISS; None compares all states.
    """
    # Also where it is not used: a slip would show only when it is.
    check_embedding(embedding)
    episode, weight, diagnostics = episode_part(rows, alpha, beta, norm, modulation)
    if not aggregation:
        return Parts(episode, np.zeros(len(rows.reward)), omega, diagnostics, modulation=weight)
    pool = rows.group if scope == "group" else np.zeros_like(rows.group)
    index = ProximityIndex(
        rows.state, pool, embedding=embedding, top_k=top_k, history=history, episode=rows.episode
    )
    # Deviations from the pool's mean stand for returns: equal returns then give exactly 0.
    value = relative_to_group(rows.step_return, pool, "mean")
    baselines = soft_baselines(index, value, rows.episode, tau=tau, exclude=exclude)
    step = value - baselines.value
    if len(step):
        step[without_variance(rows.step_return, pool)[pool]] = 0.0
    return Parts(
        episode=episode,
        step=step,
        omega=omega,
        diagnostics=diagnostics | baseline_diagnostics(baselines),
        neighbours=lambda row: neighbour_list(index, rows, row, tau=tau, exclude=exclude),
        modulation=weight,
    )


def episode_part(
    rows: Rows, alpha: float = 4.0, beta: float = 0.1, norm: str = "zscore", modulation: bool = True
) -> tuple[Floats, Floats | None, dict[str, float]]:
    """A_E = w(R, p) Z of every step; its weight w, or None without modulation; diagnostics.

    Args:
        rows: the steps.
        alpha: see `modulation_weight`.
        beta: see `modulation_weight`.
        norm: "zscore" or "mean".
        modulation: False leaves w at 1.

    Returns:
        (S,) episode part, (S,) weights or None, metrics by name.
    """
    episode = relative_to_group(
        rows.episode_return, rows.episode_group, norm, scale=rows.episode_scale
    )
    if not modulation:
        return episode[rows.episode], None, {}
    rate = group_mean(rows.episode_success.astype(np.float64), rows.episode_group)
    weight = modulation_weight(rows.episode_success, rate[rows.episode_group], alpha, beta)
    diagnostics = {}
    if len(weight):
        diagnostics = {
            "credit/modulation_mean": float(weight.mean()),
            "credit/modulation_min": float(weight.min()),
            "credit/modulation_max": float(weight.max()),
        }
    return (weight * episode)[rows.episode], weight[rows.episode], diagnostics


def baseline_diagnostics(baselines: Baselines) -> dict[str, float]:
    """Metrics of the soft baselines of a batch; none of an empty one."""
    if not len(baselines.value):
        return {}
    result = {
        "credit/effective_neighbours": float(baselines.neighbours.mean()),
        "credit/top_k_cut_mean": float(baselines.cut.mean()),
        "credit/top_k_cut_max": float(baselines.cut.max()),
    }
    if baselines.recalls:
        result["credit/search_recall"] = float(np.mean(baselines.recalls))
    return result


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
    """
    rarity = np.where(success, 1.0 - rate, rate) ** alpha
    # sigmoid(x) - 1/2 = tanh(x / 2) / 2, which keeps its digits at small x.
    size = np.tanh(rarity / 2) / (2 * np.tanh(0.5))
    return 1.0 + beta * np.where(success, size, -size)
