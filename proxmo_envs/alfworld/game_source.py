"""The interface of every set of games: it lists the tasks of a split and loads any of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from proxmo_envs.alfworld.games import Game, Grammar
from proxmo_envs.errors import InvalidOptionError, UnknownTaskError, unknown


class GameSource(ABC):
    """The games of one data set; it never changes, so environments and threads share it."""

    path: Path
    splits: Collection[str]

    def __deepcopy__(self, memo: dict[int, Any]) -> GameSource:
        """Share the source."""
        return self

    @abstractmethod
    def ids(self, split: str) -> tuple[str, ...]:
        """Return the sorted task ids of a split; raises InvalidOptionError for an unknown split."""

    @abstractmethod
    def game(self, task_id: str) -> Game:
        """Load a game; raises UnknownTaskError for an unknown task."""

    @abstractmethod
    def content_hash(self, task_id: str) -> str:
        """Return the hash of the game's content."""

    def grammar(self, task_id: str) -> Grammar:
        """Return the grammar of a game."""
        return self.game(task_id).grammar

    def _check_split(self, split: str) -> None:
        if split not in self.splits:
            raise InvalidOptionError(f"{self.path}: {unknown('split', split, self.splits)}")

    def _unknown_task(self, task_id: str, known: Iterable[str]) -> UnknownTaskError:
        """Return the error for an id that is none of the `known` ones of its split."""
        known = list(known) or [f"{split}/..." for split in self.splits]
        return UnknownTaskError(f"{self.path}: {unknown('task', task_id, known)}")


def split_of(task_id: str) -> str:
    """Return the split of an official game, which is the first part of its id."""
    return task_id.partition("/")[0]
