"""Data that crosses module borders: steps, episodes, and columns for the credit assignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Outcome(str, Enum):
    """How an episode ended. An ERROR episode is reported and never counted as a loss."""

    WON = "won"
    LOST = "lost"
    TRUNCATED = "truncated"
    OVERFLOW = "overflow"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Step:
    """One decision: the prompt as sent, the response as sampled, and the reward.

    `logprobs` are the sampler's at sampling temperature, one per token of `response_ids` (the
    end-of-turn token included). `observation` is the raw text the agent reacted to: the state of
    the credit assignment.
    """

    index: int
    observation: str
    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    response: str
    action: str | None
    valid: bool
    reason: str
    reward: float
    weight_version: int
    # (prompt, response) tokens as counted by an API, which gives no ids.
    counted: tuple[int, int] | None = None

    @property
    def prompt_tokens(self) -> int:
        """Number of prompt tokens."""
        return len(self.prompt_ids) if self.counted is None else self.counted[0]

    @property
    def response_tokens(self) -> int:
        """Number of response tokens."""
        return len(self.response_ids) if self.counted is None else self.counted[1]


@dataclass(frozen=True, slots=True)
class Episode:
    """One game from reset to its end; episodes of one `group` started from the identical state."""

    group: int
    member: int
    task_id: str
    task_type: str
    task: str
    steps: tuple[Step, ...]
    outcome: Outcome
    score: float = 0.0
    cause: str | None = None
    # Number of this try, for agents that play a task again after a failure.
    trial: int = 1
    # (prompt, response) tokens of the tries before this one and of the notes on them.
    earlier: tuple[int, int] = (0, 0)

    @property
    def won(self) -> bool:
        """Whether the environment reports a success; never inferred from the reward."""
        return self.outcome is Outcome.WON

    @property
    def episode_return(self) -> float:
        """Undiscounted sum of the step rewards."""
        return float(sum(step.reward for step in self.steps))

    @property
    def prompt_tokens(self) -> int:
        """Prompt tokens of all tries."""
        return self.earlier[0] + sum(step.prompt_tokens for step in self.steps)

    @property
    def response_tokens(self) -> int:
        """Response tokens of all tries."""
        return self.earlier[1] + sum(step.response_tokens for step in self.steps)


@dataclass(frozen=True, slots=True)
class Batch:
    """Steps of many episodes as columns, one row per step; S rows, in the order of `steps`."""

    steps: tuple[Step, ...]
    group: NDArray[np.int64]
    episode: NDArray[np.int64]
    index: NDArray[np.int64]
    reward: NDArray[np.float64]
    success: NDArray[np.bool_]
    truncated: NDArray[np.bool_]

    @classmethod
    def from_episodes(cls, episodes: Sequence[Episode]) -> Batch:
        """Lays out the steps of all episodes except those that ended in ERROR."""
        usable = [e for e in episodes if e.outcome is not Outcome.ERROR and e.steps]
        lengths = [len(e.steps) for e in usable]
        steps = tuple(step for e in usable for step in e.steps)
        return cls(
            steps=steps,
            group=np.repeat([e.group for e in usable], lengths).astype(np.int64),
            episode=np.repeat(np.arange(len(usable)), lengths).astype(np.int64),
            index=np.array([step.index for step in steps], dtype=np.int64),
            reward=np.array([step.reward for step in steps], dtype=np.float64),
            success=np.repeat([e.won for e in usable], lengths).astype(bool),
            truncated=np.repeat([e.outcome is Outcome.TRUNCATED for e in usable], lengths).astype(
                bool
            ),
        )

    @property
    def states(self) -> list[str]:
        """Raw observation of each row."""
        return [step.observation for step in self.steps]

    @property
    def valid(self) -> NDArray[np.bool_]:
        """(S,) whether the action of each row was valid."""
        return np.array([step.valid for step in self.steps], dtype=bool)

    @property
    def actions(self) -> list[str | None]:
        """Action of each row, None where none could be read."""
        return [step.action for step in self.steps]

    def __len__(self) -> int:
        return len(self.steps)
