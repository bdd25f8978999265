"""The front door: flat arrays and the name of a method in, advantages out."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo.credit.diagnostics import diagnose
from proxmo.credit.explain import Explanation, explain_row
from proxmo.credit.options import check_options
from proxmo.credit.registry import Parts, find_method
from proxmo.credit.rows import Rows, sort_rows
from proxmo.errors import DataError


@dataclass(frozen=True, slots=True)
class Credit:
    """What each of S steps is worth: A_E + omega A_S - penalty.

    Attributes:
        advantage: (S,) that sum, the number every token of the step's response is weighted with.
        episode_advantage: (S,) its episode part, A_E.
        step_advantage: (S,) its step part before omega, A_S.
        step_return: (S,) discounted return from the step on, times `reward_scale`, G_t.
        modulation: (S,) ProxMO's weight inside A_E; None for methods without one.
        diagnostics: metrics by name, `credit/...`.
    """

    advantage: Any
    episode_advantage: Any
    step_advantage: Any
    step_return: Any
    modulation: Any
    diagnostics: dict[str, float]
    _rows: Rows = field(repr=False)
    _parts: Parts = field(repr=False)

    def explain(self, row: int) -> Explanation:
        """Why a row got its advantage.

        Args:
            row: row of the arrays that were passed.

        Raises:
            IndexError: no such row.
        """
        rows = len(self._rows.expand)
        if not isinstance(row, (int, np.integer)) or not 0 <= row < rows:
            raise IndexError(f"row is {row!r}; expected one of the {rows} rows, counted from 0")
        return explain_row(self._rows, self._parts, int(row))


def assign(
    method: str,
    *,
    group: Iterable[Hashable],
    episode: Iterable[Hashable],
    step: Iterable[int],
    reward: Any,
    success: Iterable[bool],
    state: Any,
    gamma: float = 0.95,
    truncated: Iterable[bool] | None = None,
    action: Iterable[str | None] | None = None,
    penalty: Any = None,
    reward_scale: float = 1.0,
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
        truncated: (S,) whether a limit cut the episode off, on any or all of its rows. Methods
            that use values then expect the value of its last state to go on, not 0.
        action: S actions as text, for methods that compare actions; None for no valid one.
        penalty: (S,) number to subtract from the advantage of this step alone, for example for an
            invalid action. A penalty in `reward` lowers the returns of all earlier steps too.
        reward_scale: what a reward of 1 counts as in the step part. The step part grows with the
            rewards and a z-scored episode part does not: the paper's environments pay 10 for a win.
        **options: options of the method.

    Returns:
        Credit in the order of the rows: torch tensors where reward is one (same device), else
        numpy arrays; floats as wide as those of reward.

    Raises:
        UnknownNameError: no such method.
        ConfigError: an option or value the method does not take.
        DataError: arrays that do not fit together, or a method that gave no finite number per step.
    """
    function = find_method(method)
    check_options(method, function, options)
    rows = sort_rows(
        group=group,
        episode=episode,
        step=step,
        reward=reward,
        success=success,
        state=state,
        gamma=gamma,
        truncated=truncated,
        action=action,
        reward_scale=reward_scale,
    )
    parts = function(rows, **options)
    _check_parts(method, parts, len(rows.reward))
    if penalty is not None:
        parts = replace(parts, penalty=rows.column("penalty", penalty))

    def expanded(column: NDArray[np.float64]) -> Any:
        return _like(column[rows.expand], reward)

    return Credit(
        advantage=expanded(parts.advantage),
        episode_advantage=expanded(parts.episode),
        step_advantage=expanded(parts.step),
        step_return=expanded(rows.step_return),
        modulation=None if parts.modulation is None else expanded(parts.modulation),
        diagnostics=diagnose(rows, parts),
        _rows=rows,
        _parts=parts,
    )


def _check_parts(method: str, parts: Any, steps: int) -> None:
    """Raise DataError unless a method, which may be the user's, gave finite numbers per step."""
    if not isinstance(parts, Parts):
        raise DataError(f"credit method {method} gave {type(parts).__name__}; expected Parts")
    for name in ("episode", "step", "modulation"):
        values = getattr(parts, name)
        if values is None and name == "modulation":
            continue
        if getattr(values, "shape", None) != (steps,) or not np.isfinite(values).all():
            raise DataError(
                f"{name} of credit method {method} is {values!r}; expected an array of {steps} "
                "finite numbers"
            )
    if not np.isfinite(parts.omega):
        raise DataError(f"omega of credit method {method} is {parts.omega}; expected a number")


def _like(values: NDArray[np.float64], reward: Any) -> Any:
    """Values as the kind of array, on the device and in the float type of the rewards."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(reward, torch.Tensor):
        dtype = reward.dtype if reward.dtype.is_floating_point else torch.get_default_dtype()
        return torch.from_numpy(values).to(device=reward.device, dtype=dtype)
    dtype = getattr(reward, "dtype", None)
    return values.astype(dtype if dtype is not None and dtype.kind == "f" else np.float64)
