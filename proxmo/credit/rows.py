"""The input of every credit method: one row per step, sorted, with integer ids.

Methods are written against this one shape, so that none of them sees ids of any type, rows out of
order, torch tensors, or copied padding rows (a copy would count twice in every mean).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.checks import (
    check_copies,
    check_finite,
    check_flags,
    check_lengths,
    check_success,
    check_values,
)
from proxmo.credit.numbering import number
from proxmo.credit.returns import step_returns
from proxmo.credit.states import States, state_codes
from proxmo.credit.statistics import group_sum
from proxmo.errors import ConfigError, DataError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """S steps of E episodes in G groups, sorted by (group, episode, step), each step once.

    Attributes:
        group: (S,) group of the step, 0 to G-1.
        episode: (S,) episode of the step, 0 to E-1; an episode belongs to one group.
        step: (S,) index of the step inside its episode, from 0.
        reward: (S,) reward of the step.
        success: (S,) the environment's flag, on any of an episode's steps.
        truncated: (S,) whether a limit cut the episode off, on any of its steps.
        state: S observations, an (S, D) array of embeddings, or None.
        action: S actions as text, or None.
        gamma: discount factor.
        reward_scale: what a reward of 1 counts as in the step part.
        source: (S,) the caller's row each row comes from.
        expand: (rows of the caller,) position here of each of the caller's rows.
    """

    group: Ints
    episode: Ints
    step: Ints
    reward: Floats
    success: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    state: States
    action: States
    gamma: float
    reward_scale: float
    source: Ints
    expand: Ints

    @cached_property
    def step_return(self) -> Floats:
        """(S,) discounted return from the step on, times the reward scale, G_t."""
        returns = step_returns(self.reward, self.episode, self.step, self.gamma)
        return self.reward_scale * returns

    @cached_property
    def step_return_scale(self) -> Floats:
        """(S,) the same of absolute rewards: what rounding of G_t is relative to."""
        size = step_returns(np.abs(self.reward), self.episode, self.step, self.gamma)
        return self.reward_scale * size

    @cached_property
    def state_code(self) -> Ints | None:
        """(S,) number of each state among the distinct ones, or None."""
        return state_codes(self.state)

    @cached_property
    def episode_group(self) -> Ints:
        """(E,) group of the episode."""
        return self.group[np.flatnonzero(_changes(self.episode))]

    @cached_property
    def episode_return(self) -> Floats:
        """(E,) undiscounted sum of the episode's rewards, R_i."""
        return self._episode_sum(self.reward)

    @cached_property
    def episode_scale(self) -> Floats:
        """(E,) sum of absolute rewards: what rounding of R_i is relative to."""
        return self._episode_sum(np.abs(self.reward))

    @cached_property
    def episode_success(self) -> NDArray[np.bool_]:
        """(E,) whether the environment calls the episode a success."""
        return self._episode_sum(self.success) > 0

    @cached_property
    def episode_truncated(self) -> NDArray[np.bool_]:
        """(E,) whether a limit cut the episode off; never one that was won at the limit."""
        return (self._episode_sum(self.truncated) > 0) & ~self.episode_success

    def _episode_sum(self, values: NDArray[Any]) -> Floats:
        return group_sum(values, self.episode, int(self.episode.max(initial=-1)) + 1)

    def text(self, row: int) -> str | None:
        """The observation of a row; None where states are vectors or missing."""
        if self.state is None or isinstance(self.state, np.ndarray):
            return None
        return self.state[row]

    def column(self, name: str, values: Any) -> Floats:
        """(S,) one more number per step, that the caller gave in the order of the caller's rows.

        Raises:
            DataError: not one finite number for each of the caller's rows.
        """
        numbers = _numbers(name, values).astype(np.float64)
        if len(numbers) != len(self.expand):
            raise DataError(f"{name} has {len(numbers)} entries; expected {len(self.expand)}")
        check_finite(name, numbers)
        return numbers[self.source]


def sort_rows(
    *,
    group: Iterable[Hashable],
    episode: Iterable[Hashable],
    step: Iterable[Any],
    reward: Iterable[float],
    success: Iterable[bool],
    state: Any,
    gamma: Any,
    truncated: Any = None,
    action: Iterable[str | None] | None = None,
    reward_scale: Any = 1.0,
) -> Rows:
    """Bring the caller's flat arrays, in any row order, into the shape methods work on.

    Raises:
        DataError: ids that cannot be ids, arrays of different lengths, a step that is no whole
            number, a reward that is not finite, a success flag that is taken back, a step given
            twice with different rewards or states.
        ConfigError: gamma outside [0, 1], a reward scale that is not above 0.
    """
    if not isinstance(gamma, Real) or not 0.0 <= float(gamma) <= 1.0:
        raise ConfigError(f"gamma is {gamma!r}; expected a number from 0 to 1")
    if not isinstance(reward_scale, Real) or not 0.0 < float(reward_scale) < float("inf"):
        raise ConfigError(f"reward_scale is {reward_scale!r}; expected a number above 0")
    ids = {"group": to_ids("group", group), "episode": to_ids("episode", episode)}
    given = {"step": step, "reward": reward, "success": success}
    numbers = {name: _numbers(name, values) for name, values in given.items()}
    cut = None if truncated is None else _numbers("truncated", truncated)
    states = to_states(state)
    actions = None if action is None else _actions(action)
    check_lengths(ids | numbers, truncated=cut, state=states, action=actions)
    rewards, won = numbers["reward"].astype(np.float64), numbers["success"]
    cut = np.zeros(len(won), bool) if cut is None else cut
    check_values(numbers["step"], rewards)
    check_flags("success", won)
    check_flags("truncated", cut)
    return _sorted_rows(
        ids["group"],
        ids["episode"],
        numbers["step"].astype(np.int64),
        rewards,
        flags=(won, cut),
        state=states,
        action=actions,
        gamma=float(gamma),
        reward_scale=float(reward_scale),
    )


def _sorted_rows(
    groups: Ints,
    episodes: Ints,
    steps: Ints,
    rewards: Floats,
    *,
    flags: tuple[NDArray[Any], NDArray[Any]],
    state: States,
    action: States,
    gamma: float,
    reward_scale: float,
) -> Rows:
    """The rows of columns that each are what they should be; `flags` are success, truncated."""
    order = np.lexsort((steps, episodes, groups))
    group_starts = _changes(groups[order])
    first_of_episode = group_starts | _changes(episodes[order])
    first_of_step = first_of_episode | _changes(steps[order])
    position = np.cumsum(first_of_step) - 1
    source = order[first_of_step]
    check_copies(order, source[position], rewards, state)
    expand = np.empty(len(order), np.int64)
    expand[order] = position
    episode_of = (np.cumsum(first_of_episode) - 1)[first_of_step]
    # A flag may sit on any copy of a row, so it is read before copies are dropped.
    step_won, step_cut = (group_sum(one, expand, len(source)) > 0 for one in flags)
    check_success(step_won, episode_of, source)
    return Rows(
        group=(np.cumsum(group_starts) - 1)[first_of_step],
        episode=episode_of,
        step=steps[source],
        reward=rewards[source],
        success=step_won,
        truncated=step_cut,
        state=_take(state, source),
        action=_take(action, source),
        gamma=gamma,
        reward_scale=reward_scale,
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


def to_states(state: Any) -> States:
    """Observations as a list of strings, embeddings as an array, None as it is.

    Raises:
        DataError: neither.
    """
    if state is None or hasattr(state, "detach"):
        return None if state is None else to_numpy(state)
    if isinstance(state, np.ndarray):
        if state.dtype.kind not in "OUT":
            return state
        state = state.tolist()
    if isinstance(state, (str, bytes)) or not hasattr(state, "__len__"):
        raise DataError(f"state is {state!r}; expected one observation per step, or an array")
    return to_texts("observation", list(state))


def to_texts(
    name: str, texts: list[Any], expected: str = "strings, or an array of numbers"
) -> list[str]:
    """The texts, when all of them are; else DataError."""
    odd = [kind for kind in set(map(type, texts)) if not issubclass(kind, str)]
    if odd:
        row = next(row for row, text in enumerate(texts) if isinstance(text, odd[0]))
        raise DataError(f"{name} {row} is {texts[row]!r}; expected {expected}")
    return texts


def to_ids(name: str, ids: Any) -> Ints:
    """Integers from 0 on for hashable ids, equal exactly where the ids are.

    Raises:
        DataError: ids that cannot be ids.
    """
    if hasattr(ids, "detach") or (isinstance(ids, np.ndarray) and ids.dtype.kind in "iub"):
        return np.unique(_numbers(name, ids), return_inverse=True)[1].astype(np.int64)
    if isinstance(ids, np.ndarray):
        ids = ids.tolist()
    try:
        codes, seen = number(ids)
    except TypeError as error:
        raise DataError(f"{name} has {error}; expected one hashable id per step") from error
    odd = next((one for one in seen if one != one), None)
    if odd is not None:
        raise DataError(f"{name} has an id {odd!r}, which equals nothing; expected hashable ids")
    return codes


def _actions(action: Any) -> list[str]:
    """The actions as text, "" where there is none (None)."""
    try:
        if isinstance(action, (str, bytes)):
            raise TypeError("one text")
        actions = ["" if one is None else one for one in action]
    except TypeError as error:
        raise DataError(f"action is {action!r}; expected one text per step, or None") from error
    return to_texts("action", actions, "strings, or None for no valid action")


def _numbers(name: str, values: Any) -> NDArray[Any]:
    try:
        array = to_numpy(values)
    except (ValueError, TypeError) as error:
        raise DataError(f"{name} is no array ({error}); expected one number per step") from error
    if array.ndim != 1 or array.dtype.kind not in "iufb":
        raise DataError(
            f"{name} is an array of shape {array.shape} and type {array.dtype}; "
            "expected one number per step"
        )
    return array


def _changes(values: NDArray[Any]) -> NDArray[np.bool_]:
    """True where a value differs from the one before it, and at the first."""
    changed = np.ones(len(values), bool)
    changed[1:] = values[1:] != values[:-1]
    return changed


def _take(state: States, rows: Ints) -> States:
    if state is None or isinstance(state, np.ndarray):
        return None if state is None else state[rows]
    return [state[row] for row in rows.tolist()]
