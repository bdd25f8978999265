"""Where games come from: `data=` of the environment turned into something that lists and loads games."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, Protocol

from proxmo_envs.alfworld.games import GAME_FILE, Game, read_game_file
from proxmo_envs.errors import DataNotFoundError, InvalidOptionError, UnknownTaskError, unknown

GENERATED = "generated"
DATA_VARIABLE = "ALFWORLD_DATA"


class GameSource(Protocol):
    """Lists and loads the games of one data set; immutable once made, shared by environments and threads."""

    def ids(self, split: str) -> tuple[str, ...]:
        """Return the sorted task ids of a split; raises InvalidOptionError when there is no such split."""

    def game(self, task_id: str) -> Game:
        """Load a game; raises UnknownTaskError when there is no such task."""

    def content_hash(self, task_id: str) -> str:
        """Return the hash of what the game is."""


class GeneratedGames:
    """Procedural games; an id such as `generated/train/tiny/000123` says everything about its game."""

    def __init__(self, difficulty: str = "default") -> None:
        """Make the games of one difficulty; any other can still be loaded by its id."""
        from proxmo_envs.alfworld import generator

        if difficulty not in generator.DIFFICULTIES:
            raise InvalidOptionError(unknown("difficulty", difficulty, generator.DIFFICULTIES))
        self._generator = generator
        self.difficulty = difficulty

    def __deepcopy__(self, memo: dict[int, Any]) -> GeneratedGames:
        """Share the source: it never changes."""
        return self

    def ids(self, split: str) -> tuple[str, ...]:
        """Return the ids of a split; no game is generated for that."""
        sizes = self._generator.SPLIT_SIZES
        if split not in sizes:
            raise InvalidOptionError(unknown("split", split, sizes))
        prefix = f"{GENERATED}/{split}/{self.difficulty}"
        return tuple(f"{prefix}/{index:06d}" for index in range(sizes[split]))

    def game(self, task_id: str) -> Game:
        """Generate the game that `task_id` names."""
        parts = task_id.split("/")
        if (
            len(parts) != 4
            or parts[0] != GENERATED
            or parts[1] not in self._generator.SPLIT_SIZES
            or parts[2] not in self._generator.DIFFICULTIES
            or not (parts[3].isascii() and parts[3].isdigit() and len(parts[3]) == 6)
        ):
            raise UnknownTaskError(
                f"unknown task {task_id[:200]!r}; ids of generated games are {GENERATED}/SPLIT/DIFFICULTY/NUMBER "
                f"with one of the splits {', '.join(self._generator.SPLIT_SIZES)}, one of the difficulties "
                f"{', '.join(self._generator.DIFFICULTIES)} and a number of six digits"
            )
        return self._generator.generate(parts[1], int(parts[3]), parts[2])

    def content_hash(self, task_id: str) -> str:
        """Hash the id: the generator is deterministic, so its version and the id are the content."""
        version = getattr(self._generator, "VERSION", 1)
        return hashlib.sha256(f"generator {version} {task_id}".encode()).hexdigest()


class OneGame:
    """A single game file: the only task of every split."""

    def __init__(self, path: Path) -> None:
        """Read the file."""
        self._game, self._hash = read_game_file(path, task_id=_id_of(path), split=path.parts[-4:][0])

    def __deepcopy__(self, memo: dict[int, Any]) -> OneGame:
        """Share the source: it never changes."""
        return self

    def ids(self, split: str) -> tuple[str, ...]:
        """Return the one id."""
        return (self._game.task_id,)

    def game(self, task_id: str) -> Game:
        """Return the game."""
        if task_id != self._game.task_id:
            raise UnknownTaskError(unknown("task", task_id, [self._game.task_id]))
        return self._game

    def content_hash(self, task_id: str) -> str:
        """Return the hash of the game."""
        return self._hash


def _id_of(path: Path) -> str:
    """Return the id of a game file: its folder below the data directory, `split/task/trial`."""
    return "/".join(path.absolute().parent.parts[-3:])


def load_game_file(path: str | os.PathLike[str]) -> Game:
    """Read one official game file."""
    file = Path(path)
    if not file.is_file():
        raise DataNotFoundError(f"no game file {file}; give the path of a {GAME_FILE}")
    return read_game_file(file, task_id=_id_of(file), split=file.absolute().parts[-4:][0])[0]

def open_source(data: str | os.PathLike[str] | None, difficulty: str | None = None) -> GameSource:
    """Return the source that `data` names.

    None is the directory in the environment variable ALFWORLD_DATA where it is set and no `difficulty` is asked for,
    otherwise generated games. Raises DataNotFoundError and InvalidOptionError.
    """
    if data is None and difficulty is None:
        data = os.environ.get(DATA_VARIABLE) or GENERATED
    if data is None or data == GENERATED:
        return GeneratedGames(difficulty or "default")
    path = Path(data)
    if path.is_file():
        return OneGame(path)
    raise DataNotFoundError(f"no data at {path}: give an official data directory or a {GAME_FILE}")
