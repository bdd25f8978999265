"""What an explanation of recorded credit says, as plain data: for tables, JSON and reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class StepLine:
    """A step of an overview. `episode` is its place in the record of the iteration."""

    episode: int
    step: int
    group: int
    observation: str
    action: str | None
    step_return: float
    step_advantage: float
    advantage: float


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A group of an overview: the episodes of one task that were compared, and where they are.

    `episodes`, `wins` and `steps` leave out the `errors` episodes that ended in an error. The
    modulation is ProxMO's weight on the advantage of a won and of a lost episode of the group; None
    where there is no such episode, or the method has no such weight.
    """

    group: int
    task_id: str
    task: str
    episodes: int
    wins: int
    errors: int
    steps: int
    return_mean: float
    modulation_won: float | None
    modulation_lost: float | None
    first_episode: int
    last_episode: int


@dataclass(frozen=True, slots=True)
class Overview:
    """The credit of an iteration: diagnostics by name, groups, steps furthest from their baseline.

    `notes` says what could not be computed anew, or came out otherwise.
    """

    iteration: int
    method: str
    options: dict[str, Any]
    diagnostics: dict[str, float]
    groups: tuple[GroupLine, ...]
    largest: tuple[StepLine, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SimilarStep:
    """A state behind a baseline: where it first occurs and what the steps from it had together."""

    episode: int
    step: int
    similarity: float
    weight: float
    step_return: float
    count: int
    text: str | None


@dataclass(frozen=True, slots=True)
class StepReport:
    """The credit of one recorded step, taken apart.

    The advantages are the recorded ones. `baseline` is None and `neighbours` empty where the method
    compares no steps or could not be computed anew (`notes`). `value` is what the critic expected
    of the step, in a run that has one. `by_method` has the advantage other methods would have given
    with their default options, `left_out` why some have none.
    """

    iteration: int
    method: str
    options: dict[str, Any]
    episode: int
    step: int
    group: int
    task_id: str
    task: str
    outcome: str
    observation: str
    action: str | None
    reward: float
    episode_return: float
    success_rate: float
    group_size: int
    step_return: float
    baseline: float | None
    value: float | None
    episode_advantage: float
    modulation: float | None
    step_advantage: float
    omega: float
    advantage: float
    neighbours: tuple[SimilarStep, ...]
    by_method: dict[str, float]
    left_out: dict[str, str]
    notes: tuple[str, ...]
