"""The front door: flat arrays and the name of a method in, advantages out."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from proxmo.credit.registry import Parts, check_options, find_method
from proxmo.credit.rows import Rows, States, sort_rows


@dataclass(frozen=True, slots=True)
class Credit:
    """What each of S steps is worth: advantage = episode_advantage + omega * step_advantage.

    Attributes:
        advantage: (S,) the number every token of the step's response is weighted with.
        episode_advantage: (S,) its episode part, A_E.
        step_advantage: (S,) its step part before omega, A_S.
        step_return: (S,) discounted return from the step on, G_t.
        diagnostics: metrics by name, `credit/...`.
    """

    advantage: Any
    episode_advantage: Any
    step_advantage: Any
    step_return: Any
    diagnostics: dict[str, float]


def assign(
    method: str,
    *,
    group: Iterable[Hashable],
    episode: Iterable[Hashable],
    step: Iterable[int],
    reward: Any,
    success: Iterable[bool],
    state: States,
    gamma: float = 0.95,
    **options: Any,
) -> Credit:
    """Assign credit to every step of a batch of episodes.

    Args:
        method: a registered name, or `module:name` of a function of your own.
        group: (S,) task of the step; episodes of one group are compared. Any hashable ids.
        episode: (S,) episode of the step, unique inside its group. Any hashable ids.
        step: (S,) index of the step inside its episode.
        reward: (S,) reward of the step.
        success: (S,) the environment's success flag, on the last row of an episode or on all.
        state: S observations, or an (S, D) array of embeddings; None for methods that need none.
        gamma: discount of the step return, in [0, 1].
        **options: options of the method.

    Returns:
        Credit of the caller's rows, as torch tensors where reward is one, else numpy; floats as wide as reward's.

    Raises:
        UnknownNameError: no such method.
        ConfigError: an option or value the method does not take.
        DataError: arrays that do not fit together.
    """
    function = find_method(method)
    check_options(method, options)
    rows = sort_rows(
        group=group, episode=episode, step=step, reward=reward, success=success, state=state,
        gamma=gamma,
    )  # fmt: skip
    parts = function(rows, **options)
    columns = (
        parts.episode + parts.omega * parts.step, parts.episode, parts.step, rows.step_return,
    )  # fmt: skip
    diagnostics = _common_diagnostics(rows, parts) | dict(parts.diagnostics)
    return Credit(*(_like(column[rows.expand], reward) for column in columns), diagnostics)


def _like(values: np.ndarray, reward: Any) -> Any:
    """Values as the kind of array, on the device and in the float type of the rewards."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(reward, torch.Tensor):
        dtype = reward.dtype if reward.dtype.is_floating_point else torch.get_default_dtype()
        return torch.from_numpy(values).to(device=reward.device, dtype=dtype)
    dtype = getattr(reward, "dtype", None)
    return values.astype(dtype if dtype is not None and dtype.kind == "f" else np.float64)


def _common_diagnostics(rows: Rows, parts: Parts) -> dict[str, float]:
    advantage = parts.episode + parts.omega * parts.step
    if not len(advantage):
        return {}
    return {
        "credit/zero_advantage_share": float((advantage == 0).mean()),
        "credit/advantage_variance": float(advantage.var()),
        "credit/episode_variance": float(parts.episode.var()),
        "credit/step_variance": float((parts.omega * parts.step).var()),
    }
