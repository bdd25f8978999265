"""The agent as the rollout sees it: it gets situations and returns decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from proxmo.types import Episode


@dataclass(frozen=True, slots=True)
class Turn:
    """A past step: the observation and the action sent then (empty: the response held none).

    `response` is the whole text the action was read from, for agents that remember their thoughts.
    """

    observation: str
    action: str
    response: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """The situation before an action.

    `step` actions were taken; `history` holds them, or the last of them, oldest first. `admissible`
    is empty when the environment does not tell what is possible. `memory` holds what the agent told
    itself after earlier trials of the same task, oldest first.
    """

    task: str
    history: Sequence[Turn]
    step: int
    observation: str
    admissible: Sequence[str]
    memory: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Situation:
    """The input of a decision: the view its prompt is made of, the environment's last `info`.

    `seed` decides the draws of this decision, whatever else is asked for in the same call; where it
    is None, one generator made of the call's seed serves all situations in turn. `member` and
    `trial` tell apart the episodes of one task.
    """

    view: View
    info: Mapping[str, Any]
    seed: tuple[int, ...] | None = None
    member: int = 0
    trial: int = 1


@dataclass(frozen=True, slots=True)
class Decision:
    """An action and how it came about; the token fields are empty without a language model.

    `action` is None when the response held none: the environment is then stepped with the empty
    string, never with text the parser rejected. `overflow` says that the prompt did not fit, so
    nothing was asked. `error` says why the policy could not answer: the episode then ends as an
    ERROR with that cause. `counted` is that of the response.
    """

    action: str | None
    valid: bool = True
    reason: str = "ok"
    response: str = ""
    prompt_ids: tuple[int, ...] = ()
    response_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    weight_version: int = 0
    cuts: tuple[str, ...] = ()
    overflow: bool = False
    error: str | None = None
    counted: tuple[int, int] | None = None


class Agent(Protocol):
    """Decides for many episodes at once."""

    def act(self, situations: Sequence[Situation], *, seed: Sequence[int]) -> list[Decision]:
        """Returns one decision per situation; equal arguments give equal decisions."""
        ...


def own_seeds(situations: Sequence[Situation]) -> list[tuple[int, ...]] | None:
    """The seeds of the situations, None unless each has one."""
    seeds = [s.seed for s in situations if s.seed is not None]
    return seeds if len(seeds) == len(situations) else None


@runtime_checkable
class RetryingAgent(Agent, Protocol):
    """An agent that may play a task again after a failure, as Reflexion does."""

    def settle(self, episodes: Sequence[Episode], *, seed: Sequence[int]) -> list[Episode | None]:
        """Returns per ended episode the one that stands, or None: the task is to be played again.

        The next trial starts from the same state; `Episode.trial` counts from 1.
        """
        ...
