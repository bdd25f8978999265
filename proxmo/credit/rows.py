"""The input of every credit method: one row per step, sorted, with integer ids.

Methods are written against this one shape, so that none of them sees ids of any type, rows out of
order, torch tensors, or copied padding rows (a copy would count twice in every mean).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.returns import step_returns
from proxmo.credit.statistics import group_sum
from proxmo.errors import ConfigError, DataError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
States = Sequence[str] | NDArray[Any] | None


@dataclass(frozen=True, slots=True)
class Rows:
    """S steps of E episodes in G groups, sorted by (group, episode, step), each step once.

    Attributes:
        group: (S,) group of the step, 0 to G-1.
        episode: (S,) episode of the step, 0 to E-1; an episode belongs to one group.
        step: (S,) index of the step inside its episode.
        reward: (S,) reward of the step.
        step_return: (S,) discounted return from the step on, G_t.
        state: S observations, an (S, D) array of embeddings, or None.
        episode_group: (E,) group of the episode.
        episode_return: (E,) undiscounted sum of the episode's rewards, R_i.
        episode_scale: (E,) sum of absolute rewards: what rounding of R_i is relative to.
        episode_success: (E,) the environment's flag; true when any row of the episode carries it.
        gamma: discount factor.
        source: (S,) the caller's row each row comes from.
        expand: (rows of the caller,) position here of each of the caller's rows.
    """

    group: Ints
    episode: Ints
    step: NDArray[Any]
    reward: Floats
    step_return: Floats
    state: States
    episode_group: Ints
    episode_return: Floats
    episode_scale: Floats
    episode_success: NDArray[np.bool_]
    gamma: float
    source: Ints
    expand: Ints

    @property
    def groups(self) -> int:
        """Number of groups, G."""
        return int(self.episode_group[-1]) + 1 if len(self.episode_group) else 0


def sort_rows(
    *,
    group: Iterable[Hashable],
    episode: Iterable[Hashable],
    step: Iterable[Any],
    reward: Iterable[float],
    success: Iterable[bool],
    state: Any,
    gamma: float,
) -> Rows:
    """Bring the caller's flat arrays, in any row order, into the shape methods work on.

    Raises:
        DataError: arrays of different lengths, a reward that is not finite, a step given twice with
            different rewards.
        ConfigError: gamma outside [0, 1].
    """
    if not 0.0 <= gamma <= 1.0:
        raise ConfigError(f"gamma is {gamma}; expected a number from 0 to 1")
    columns = {"group": _codes(group), "episode": _codes(episode), "step": to_numpy(step)}
    rewards, won = to_numpy(reward), to_numpy(success)
    _check(columns | {"reward": rewards, "success": won}, state)
    rewards, won = rewards.astype(np.float64), won.astype(bool)
    if not np.isfinite(rewards).all():
        row = int(np.flatnonzero(~np.isfinite(rewards))[0])
        raise DataError(f"reward of row {row} is {rewards[row]}; expected a finite number")

    order = np.lexsort((columns["step"], columns["episode"], columns["group"]))
    groups, episodes, steps = (columns[name][order] for name in ("group", "episode", "step"))
    first_of_episode = _changes(groups) | _changes(episodes)
    first_of_step = first_of_episode | _changes(steps)
    position = np.cumsum(first_of_step) - 1
    source = order[first_of_step]
    _check_copies(order, source[position], rewards)

    expand = np.empty(len(order), np.int64)
    expand[order] = position
    episode_of = (np.cumsum(first_of_episode) - 1)[first_of_step]
    count = int(episode_of[-1]) + 1 if len(episode_of) else 0
    group_of = (np.cumsum(_changes(groups)) - 1)[first_of_step]
    episode_group = np.zeros(count, np.int64)
    episode_group[episode_of] = group_of
    # The flag may sit on any copy of any row, so it is read before copies are dropped.
    won_count = group_sum(won.astype(np.float64), episode_of[expand], count)
    reward_of = rewards[source]
    return Rows(
        group=group_of,
        episode=episode_of,
        step=columns["step"][source],
        reward=reward_of,
        step_return=step_returns(reward_of, episode_of, columns["step"][source], gamma),
        state=_take(state, source),
        episode_group=episode_group,
        episode_return=group_sum(reward_of, episode_of, count),
        episode_scale=group_sum(np.abs(reward_of), episode_of, count),
        episode_success=won_count > 0,
        gamma=gamma,
        source=source,
        expand=expand,
    )


def to_numpy(values: Any) -> NDArray[Any]:
    """A numpy array of anything array-like; a torch tensor is brought to the CPU."""
    if not hasattr(values, "detach"):
        return np.asarray(values)
    tensor = values.detach().cpu()
    # numpy has no bfloat16.
    return np.asarray(tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor)


def _codes(ids: Iterable[Hashable]) -> Ints:
    """Integers for hashable ids, equal exactly where the ids are."""
    if hasattr(ids, "detach") or (isinstance(ids, np.ndarray) and ids.dtype.kind in "iub"):
        return np.unique(to_numpy(ids), return_inverse=True)[1].astype(np.int64)
    if isinstance(ids, np.ndarray):
        ids = ids.tolist()
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(one, len(seen)) for one in ids], np.int64)


def _changes(values: NDArray[Any]) -> NDArray[np.bool_]:
    """True where a value differs from the one before it, and at the first."""
    changed = np.ones(len(values), bool)
    changed[1:] = values[1:] != values[:-1]
    return changed


def _check(columns: dict[str, NDArray[Any]], state: Any) -> None:
    for name, values in columns.items():
        if values.ndim != 1 or values.dtype.kind not in "iufb":
            raise DataError(
                f"{name} is an array of shape {values.shape} and type {values.dtype}; "
                "expected one number per step"
            )
    lengths = {name: len(values) for name, values in columns.items()}
    if state is not None:
        lengths["state"] = len(state)
    if len(set(lengths.values())) > 1:
        text = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise DataError(f"arrays differ in length ({text}); expected one entry per step in each")


def _check_copies(rows: Ints, kept: Ints, reward: Floats) -> None:
    """A step given twice is a padding copy, unless its reward differs: then the ids are wrong."""
    differs = np.flatnonzero(reward[rows] != reward[kept])
    if len(differs):
        one, other = int(kept[differs[0]]), int(rows[differs[0]])
        raise DataError(
            f"rows {one} and {other} have the same group, episode and step but different rewards; "
            "expected episode ids that are unique inside their group"
        )


def _take(state: Any, rows: Ints) -> States:
    if state is None:
        return None
    if hasattr(state, "detach"):
        state = to_numpy(state)
    if isinstance(state, np.ndarray) and state.dtype.kind not in "OUT":
        return state[rows]
    return [state[row] for row in rows.tolist()]
