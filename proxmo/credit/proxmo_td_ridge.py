"""ProxMO-TD with values by kernel ridge regression on what an episode has seen so far. Ours.

An observation alone often says little of how far an episode is: the same shelf is met before and
after the mug was found. The kernel compares decayed histories of observations and step numbers, and
the regression shrinks to the mean of the task where there is little evidence.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.gae import td_advantages
from proxmo.credit.options import Decay, Fraction, Norm, Positive
from proxmo.credit.proximity import ProximityIndex
from proxmo.credit.proxmo import episode_part
from proxmo.credit.registry import Parts, method
from proxmo.credit.rows import Rows
from proxmo.errors import ConfigError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# The most steps of a task: matrices of 8,192 x 8,192 numbers take half a gigabyte each.
_MOST_STEPS = 8192
# Weight of the step kernel alone, beside its product with the state kernel: how many steps are left
# matters also between states that have nothing in common.
_STEP_KERNEL = 0.5


@method("proxmo-td-ridge")
def proxmo_td_ridge(
    rows: Rows,
    *,
    lam: Fraction = 0.3,
    ridge: Positive = 3.0,
    step_width: Positive = 10.0,
    omega: float = 1.0,
    episode_weight: float = 1.0,
    norm: Norm = "zscore",
    modulation: bool = True,
    embedding: str = "tfidf",
    history: Decay = 0.5,
) -> Parts:
    """A = episode_weight w(R, p) Z + omega sum over k >= t of (gamma lam)^(k-t) delta_k.

    delta_t = r_t + gamma V_{t+1} - V_t. V regresses the returns of the task's other episodes:
    V_t = m + k_t (K + ridge I)^-1 (G - m), m their mean, with the kernel of two steps
    k(t, u) = (h_t . h_u + 1/2) exp(-((t - u) / step_width)^2 / 2), h the embeddings with history.

    Args:
        rows: the steps, with states.
        lam: trade of bias (0) against variance (1), in [0, 1].
        ridge: how much evidence it takes to leave the mean of the task, > 0.
        step_width: how many steps apart two steps are still alike, > 0.
        omega: weight of the step part.
        episode_weight: weight of the episode part; 0 leaves the step part alone.
        norm: "zscore" or "mean", of the episode part.
        modulation: False leaves w at 1.
        embedding: of the states: tfidf, hash, sentence:<model or path>, module:name.
        history: decay of earlier observations in the embedding (see ProximityIndex).

    Raises:
        ConfigError: a task with more steps than a dense kernel can hold; a ridge so small that
            the kernel cannot be inverted.
    """
    episode, weight, diagnostics = episode_part(rows, norm=norm, modulation=modulation)
    index = ProximityIndex(
        rows.state, rows.group, embedding=embedding, history=history, episode=rows.episode
    )
    value = np.empty(len(rows.reward))
    for part, kernel in group_kernels(rows, index):
        apart = (rows.step[part, None] - rows.step[part]) / step_width
        kernel = (kernel + _STEP_KERNEL) * np.exp(-(apart**2) / 2)
        try:
            value[part] = left_out_values(kernel, rows.step_return[part], rows.episode[part], ridge)
        except np.linalg.LinAlgError as error:
            raise ConfigError(
                f"ridge is {ridge:g}, too small to tell equal states apart; choose a larger one"
            ) from error
    return Parts(
        episode=episode_weight * episode,
        step=td_advantages(rows, rows.reward_scale * rows.reward, value, lam),
        omega=omega,
        diagnostics=diagnostics,
        modulation=weight,
    )


def group_kernels(rows: Rows, index: ProximityIndex) -> Iterator[tuple[slice, Floats]]:
    """The rows of each task, and the similarities of their states, (N, N).

    Raises:
        ConfigError: a task with more than _MOST_STEPS steps.
    """
    edges = np.flatnonzero(np.diff(rows.group, prepend=-1, append=-1)).tolist()
    for start, stop in zip(edges[:-1], edges[1:], strict=True):
        if stop - start > _MOST_STEPS:
            raise ConfigError(
                f"a task has {stop - start} steps; this method compares at most {_MOST_STEPS} of "
                "one task with each other: choose proxmo-td, or a smaller rollout.group_size"
            )
        node = index.nodes.of_row[start:stop]
        first, last = index.nodes.pool_of(int(node[0]))
        vectors = index.vectors(first, last).astype(np.float64)
        yield slice(start, stop), (vectors @ vectors.T)[np.ix_(node - first, node - first)]


def left_out_values(kernel: Floats, returns: Floats, episode: Ints, ridge: float) -> Floats:
    """(N,) kernel ridge regression of the returns, each episode predicted from the others.

    One inverse A of K + ridge I gives them all: with episode e left out, the residuals of e are
    (A_ee)^-1 (A y)_e. That is linear in y, so the mean of the others can be put in afterwards. An
    episode without others keeps its own returns, so that it gets no credit.

    Args:
        kernel: (N, N) of the steps.
        returns: (N,) returns.
        episode: (N,) episode of each step, rows of an episode together.
        ridge: added to the diagonal.
    """
    inverse = np.linalg.inv(kernel + ridge * np.eye(len(kernel)))
    right = inverse @ np.stack([returns, np.ones_like(returns)], 1)
    value = returns.copy()
    for part in np.split(np.arange(len(episode)), np.flatnonzero(np.diff(episode)) + 1):
        others = len(returns) - len(part)
        if others:
            residual, of_one = np.linalg.solve(inverse[np.ix_(part, part)], right[part]).T
            mean = (returns.sum() - returns[part].sum()) / others
            value[part] = returns[part] - (residual - mean * of_one)
    return value
