"""ProxMO-TD-ridge, averaged over steps with a like state and a like action. Ours.

What one try of an action brought is mostly luck; what all tries of it from such states brought is
less so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from proxmo.credit.options import Positive
from proxmo.credit.proximity import ProximityIndex
from proxmo.credit.proxmo_td_ridge import group_kernels, proxmo_td_ridge
from proxmo.credit.registry import Parts, method
from proxmo.credit.rows import Rows
from proxmo.errors import DataError


@method("proxmo-td-smooth", extends=proxmo_td_ridge)
def proxmo_td_smooth(
    rows: Rows, *, state_tau: Positive = 0.3, action_tau: Positive = 0.1, **options: Any
) -> Parts:
    """The step part of `proxmo-td-ridge`, averaged: A'_t = sum over u of w_tu A_u.

    w_tu = softmax over the steps u of the task, t among them, of
    e_t . e_u / state_tau + a_t . a_u / action_tau, e the embeddings of the observations without
    history and a those of the actions, by TF-IDF.

    Args:
        rows: the steps, with states and actions.
        state_tau: temperature of the similarity of states, > 0.
        action_tau: temperature of the similarity of actions, > 0.
        **options: those of `proxmo-td-ridge`.

    Raises:
        DataError: no actions.
    """
    if rows.action is None:
        raise DataError(
            "action is None; proxmo-td-smooth needs the action of every step (pass action=)"
        )
    parts = proxmo_td_ridge(rows, **options)
    states = ProximityIndex(rows.state, rows.group, embedding=options.get("embedding", "tfidf"))
    actions = ProximityIndex(rows.action, rows.group)
    step = parts.step.copy()
    pairs = zip(group_kernels(rows, states), group_kernels(rows, actions), strict=True)
    for (part, of_states), (_, of_actions) in pairs:
        # No similarity is above 1, that of a step to itself.
        weight = np.exp((of_states - 1.0) / state_tau + (of_actions - 1.0) / action_tau)
        step[part] = weight @ parts.step[part] / weight.sum(1)
    return replace(parts, step=step)
