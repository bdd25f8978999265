"""ProxMO-TD: ProxMO's baseline as the value of a state, and TD(lambda) instead of the whole return.

ProxMO compares the return of a step with what similar states returned: luck of the later steps
stays in it. Here the baseline, without the step's own episode, is a value V, and a step is credited
with the change of V it brought about. Ours, not the paper's.
"""

from __future__ import annotations

import numpy as np

from proxmo.credit.aggregation import soft_baselines
from proxmo.credit.explain import neighbour_list
from proxmo.credit.gae import td_advantages
from proxmo.credit.options import Count, Decay, Fraction, Norm, Positive, Scope
from proxmo.credit.proximity import ProximityIndex
from proxmo.credit.proxmo import Width, baseline_diagnostics, episode_part
from proxmo.credit.registry import Parts, method
from proxmo.credit.rows import Rows
from proxmo.credit.statistics import relative_to_group


@method("proxmo-td")
def proxmo_td(
    rows: Rows,
    *,
    lam: Fraction = 0.3,
    tau: Positive = 0.1,
    omega: float = 1.0,
    episode_weight: float = 1.0,
    alpha: Positive = 4.0,
    beta: Width = 0.1,
    norm: Norm = "zscore",
    modulation: bool = True,
    embedding: str = "tfidf",
    history: Decay = 0.0,
    scope: Scope = "group",
    top_k: Count | None = None,
) -> Parts:
    """A = episode_weight w(R, p) Z + omega sum over k >= t of (gamma lam)^(k-t) delta_k.

    delta_t = r_t + gamma V_{t+1} - V_t, V_t the mean return of the steps of other episodes weighted
    by the similarity of their states. A step without other episodes to compare with gets 0.

    Args:
        rows: the steps, with states.
        lam: trade of bias (0) against variance (1), in [0, 1].
        tau: temperature of the similarity softmax, > 0.
        omega: weight of the step part.
        episode_weight: weight of the episode part; 0 leaves the step part alone.
        alpha: see `proxmo`.
        beta: see `proxmo`.
        norm: "zscore" or "mean", of the episode part.
        modulation: False leaves w at 1.
        embedding: of the states: tfidf, hash, sentence:<model or path>, module:name.
        history: decay of earlier observations in the embedding (see ProximityIndex); 0 is off.
        scope: steps that are compared: those of the "group", or of the whole "batch".
        top_k: most neighbours per state, found by FAISS; None compares all states.
    """
    episode, weight, diagnostics = episode_part(rows, alpha, beta, norm, modulation)
    pool = rows.group if scope == "group" else np.zeros_like(rows.group)
    index = ProximityIndex(
        rows.state, pool, embedding=embedding, top_k=top_k, history=history, episode=rows.episode
    )
    # Deviations from the pool's mean keep their digits; the mean is added afterwards.
    deviation = relative_to_group(rows.step_return, pool, "mean")
    baselines = soft_baselines(index, deviation, rows.episode, tau=tau, exclude="episode")
    value = baselines.value + (rows.step_return - deviation)
    return Parts(
        episode=episode_weight * episode,
        step=td_advantages(rows, rows.reward_scale * rows.reward, value, lam),
        omega=omega,
        diagnostics=diagnostics | baseline_diagnostics(baselines),
        neighbours=lambda row: neighbour_list(index, rows, row, tau=tau, exclude="episode"),
        modulation=weight,
    )
