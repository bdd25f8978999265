"""What the arrays of a batch of steps must be; each error says which row is not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo.errors import DataError

Ints = NDArray[np.int64]

# Numbers above this have squares that overflow.
_LARGEST = 1e100
_FINITE = f"a finite number from {-_LARGEST:g} to {_LARGEST:g}"


def check_lengths(columns: dict[str, NDArray[Any]], **others: Any) -> None:
    """Raise DataError unless all columns that are given have one entry per step."""
    given = columns | {name: column for name, column in others.items() if column is not None}
    lengths = {name: len(values) for name, values in given.items()}
    if len(set(lengths.values())) > 1:
        text = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise DataError(f"arrays differ in length ({text}); expected one entry per step in each")


def check_values(step: NDArray[Any], reward: NDArray[np.float64]) -> None:
    """Raise DataError for a step that is no whole number or a reward that is not finite."""
    whole = step >= 0
    if step.dtype.kind == "f":
        # The largest int64 is no float: rounded to one it is 2^63, which half precision has not.
        whole &= (step.astype(np.float64) < 2.0**63) & (step == np.floor(step))
    else:
        whole &= step <= np.iinfo(np.int64).max
    _refuse("step", step, ~whole, "a whole number from 0 on")
    check_finite("reward", reward)


def check_flags(name: str, values: NDArray[Any]) -> None:
    """Raise DataError unless every value is a flag, 0 or 1."""
    _refuse(name, values, (values != 0) & (values != 1), "a flag, 0 or 1")


def check_finite(name: str, values: NDArray[np.float64]) -> None:
    """Raise DataError for nan, infinity and numbers whose squares would be infinite."""
    # Comparing excludes nan as well.
    _refuse(name, values, ~(np.abs(values) <= _LARGEST), _FINITE)


def check_copies(rows: Ints, kept: Ints, reward: NDArray[np.float64], state: Any) -> None:
    """A step given twice is a padding copy, unless it differs: then the ids are wrong.

    Args:
        rows: (S,) rows.
        kept: (S,) the first row with the same group, episode and step.
        reward: (S,) rewards of the rows.
        state: states of the rows; a list of observations is compared, vectors are not: those of
            one prompt differ by the batch they were computed in.
    """
    for one, other in zip(kept[kept != rows].tolist(), rows[kept != rows].tolist(), strict=True):
        what = ""
        if reward[one] != reward[other]:
            what = "rewards"
        elif isinstance(state, list) and state[one] != state[other]:
            what = "observations"
        if what:
            raise DataError(
                f"rows {one} and {other} have the same group, episode and step but different "
                f"{what}; expected episode ids that are unique inside their group"
            )


def check_success(won: NDArray[np.bool_], episode: Ints, row: Ints) -> None:
    """Raise DataError for an episode that has succeeded at a step and not at a later one.

    Args:
        won: (S,) flag of each step, sorted by episode, then step.
        episode: (S,) episode of each step.
        row: (S,) the caller's row of each step.
    """
    back = np.flatnonzero(won[:-1] & ~won[1:] & (episode[1:] == episode[:-1]))
    if len(back):
        one, other = row[back[0]], row[back[0] + 1]
        raise DataError(
            f"success of row {one} is true, and false at the episode's next step (row {other}); "
            "expected the flag on all rows of an episode, or from some row on"
        )


def _refuse(name: str, values: NDArray[Any], wrong: NDArray[np.bool_], expected: str) -> None:
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise DataError(f"{name} of row {row} is {values[row]}; expected {expected}")
