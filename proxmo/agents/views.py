"""What an agent sees of an episode, before any of it becomes a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Turn:
    """A past step: what was seen, and the action sent then (empty when the response held none).

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
