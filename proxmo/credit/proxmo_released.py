"""ProxMO as its authors' published code computes it, where that differs from the paper.

For comparison with published numbers only. The differences: the mean return of a group counts an
episode as often as it has steps and is not divided by a deviation; that mean, cut to [0, 1], stands
for the success rate; a group of one step keeps its raw return; TF-IDF drops one-character tokens
("drawer 1" equals "drawer 2") and is fitted to all tasks of the batch together; an observation
without a longer token has similarity 0 to itself. Nothing is divided by a deviation, so
`reward_scale` counts in both parts.
"""

from __future__ import annotations

import numpy as np

from proxmo.credit.aggregation import soft_baselines
from proxmo.credit.embeddings import Embedding, dense, inverse_document_frequency, normalise
from proxmo.credit.explain import neighbour_list
from proxmo.credit.options import Positive
from proxmo.credit.proximity import ProximityIndex
from proxmo.credit.proxmo import Width, modulation_weight
from proxmo.credit.registry import Parts, method
from proxmo.credit.rows import Rows
from proxmo.credit.statistics import group_mean
from proxmo.credit.terms import count_terms
from proxmo.errors import ConfigError

_MAX_FEATURES = 1024
_TAU = 0.1


@method("proxmo-released")
def proxmo_released(
    rows: Rows,
    *,
    alpha: Positive = 4.0,
    beta: Width = 0.1,
    omega: float = 1.0,
    modulation: bool = True,
) -> Parts:
    """A = w (R_i - mean over steps) + omega (G_t - B_t), with the released code's conventions.

    Args:
        rows: the steps, with observations.
        alpha: see `proxmo`.
        beta: see `proxmo`.
        omega: weight of the step part.
        modulation: False leaves w at 1.
    """
    lengths = np.bincount(rows.episode, minlength=len(rows.episode_group)).astype(np.float64)
    returns = rows.reward_scale * rows.episode_return
    mean = group_mean(returns, rows.episode_group, lengths)
    steps = np.bincount(rows.group)
    kept = np.where(steps == 1, 0.0, mean)[rows.episode_group]
    episode = returns - kept
    weight = np.ones(len(episode))
    if modulation:
        rate = np.clip(mean, 0.0, 1.0)[rows.episode_group]
        weight = modulation_weight(rows.episode_success, rate, alpha, beta)
        episode = episode * weight
    if isinstance(rows.state, np.ndarray):
        raise ConfigError("state is an array of embeddings; proxmo-released needs observations")
    embedding = fitted_to_batch(list(rows.state or ()))
    index = ProximityIndex(rows.state, rows.group, embedding=embedding, empty_equals_itself=False)
    baselines = soft_baselines(index, rows.step_return, rows.episode, tau=_TAU)
    return Parts(
        episode=episode[rows.episode],
        step=rows.step_return - baselines.value,
        omega=omega,
        neighbours=lambda row: neighbour_list(index, rows, row, tau=_TAU),
        modulation=weight[rows.episode] if modulation else None,
    )


def fitted_to_batch(texts: list[str]) -> Embedding:
    """TF-IDF of the most frequent words of two characters and more, every row a document."""
    distinct = list(dict.fromkeys(texts))
    place = {text: number for number, text in enumerate(distinct)}
    times = np.bincount([place[text] for text in texts], minlength=len(distinct))
    terms = count_terms(distinct, r"\b\w\w+\b", bind_numbers=False)
    size = len(terms.names)
    repeated = times[terms.text].astype(np.float64)
    frequency = np.bincount(terms.term, repeated, minlength=size)
    total = np.bincount(terms.term, repeated * terms.count, minlength=size)
    # Among equally frequent words those first in the alphabet are kept.
    alphabet = np.array(sorted(range(size), key=terms.names.__getitem__), np.int64)
    best = alphabet[np.argsort(-total[alphabet], kind="stable")[:_MAX_FEATURES]]
    column = np.full(size, -1)
    column[best] = np.arange(len(best))
    weight = inverse_document_frequency(frequency, len(texts))
    vectors = normalise(dense(terms, column, weight, len(best)))
    return lambda wanted: vectors[[place[text] for text in wanted]]
