"""Opens the games that the argument `data` of the environment names."""

from __future__ import annotations

import hashlib
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Final

from proxmo_envs.alfworld import generator
from proxmo_envs.alfworld.game_source import GameSource
from proxmo_envs.alfworld.games import GAME_FILE, Game, Grammar, read_game_file
from proxmo_envs.alfworld.layouts import SETTINGS
from proxmo_envs.alfworld.official import OfficialDirectory
from proxmo_envs.alfworld.packed import PackedGames, is_packed
from proxmo_envs.errors import (
    DataNotFoundError,
    InvalidOptionError,
    UnknownTaskError,
    quote,
    unknown,
)

GENERATED = "generated"
DATA_VARIABLE = "ALFWORLD_DATA"
_SPLITS: Final = tuple(generator.SPLIT_SIZES)
_GENERATED_ID: Final = re.compile(
    rf"{GENERATED}/({'|'.join(_SPLITS)})/({'|'.join(generator.DIFFICULTIES)})/([0-9]{{6}})"
)


class GeneratedGames(GameSource):
    """Procedural games; an id such as `generated/train/tiny/000123` determines its game."""

    splits = _SPLITS

    def __init__(self, difficulty: str = "default") -> None:
        """List the games of one difficulty; games of the others still load by their ids."""
        if difficulty not in generator.DIFFICULTIES:
            raise InvalidOptionError(unknown("difficulty", difficulty, generator.DIFFICULTIES))
        self.difficulty = difficulty

    def ids(self, split: str) -> tuple[str, ...]:
        """Return the ids of a split, without generating a game."""
        if split not in _SPLITS:
            raise InvalidOptionError(unknown("split", split, _SPLITS))
        return _generated_ids(split, self.difficulty)

    def game(self, task_id: str) -> Game:
        """Generate the game that `task_id` names."""
        split, difficulty, number = _generated_parts(task_id)
        return generator.generate(split, int(number), difficulty)

    def content_hash(self, task_id: str) -> str:
        """Return a hash of the id and of the version of the generator, which is deterministic."""
        version = SETTINGS[_generated_parts(task_id)[1]].version
        content = f"generator {version} {task_id}"
        return hashlib.sha256(content.encode()).hexdigest()

    def grammar(self, task_id: str) -> Grammar:
        """Return the newer grammar, which all generated games have."""
        return "move"


def _generated_parts(task_id: str) -> tuple[str, ...]:
    """Return split, difficulty and number of a generated game."""
    match = _GENERATED_ID.fullmatch(task_id)
    if match is None:
        raise UnknownTaskError(
            f"unknown task {quote(task_id)}; ids of generated games are "
            f"{GENERATED}/SPLIT/DIFFICULTY/NUMBER with a split of {', '.join(_SPLITS)}, a "
            f"difficulty of {', '.join(generator.DIFFICULTIES)} and a number of six digits"
        )
    return match.groups()


# Environments share them: 10,000 ids take more memory than a game in play.
@lru_cache
def _generated_ids(split: str, difficulty: str) -> tuple[str, ...]:
    numbers = range(generator.SPLIT_SIZES[split])
    return tuple(f"{GENERATED}/{split}/{difficulty}/{number:06d}" for number in numbers)


class OneGame(GameSource):
    """A single game file: the only task of every split."""

    def __init__(self, path: Path) -> None:
        """Read the file."""
        self.path = path
        self._game, self._hash = _read_one(path)

    def ids(self, split: str) -> tuple[str, ...]:
        """Return the only id."""
        return (self._game.task_id,)

    def game(self, task_id: str) -> Game:
        """Return the game."""
        if task_id != self._game.task_id:
            raise self._unknown_task(task_id, [self._game.task_id])
        return self._game

    def content_hash(self, task_id: str) -> str:
        """Return the content hash of the game."""
        return self._hash


def _read_one(file: Path) -> tuple[Game, str]:
    """Read a game file outside any data set; its folder `split/task/trial` is its id."""
    parts = file.resolve().parent.parts[-3:]
    return read_game_file(file, task_id="/".join(parts), split=parts[0])


def _cause(error: OSError | ValueError) -> str:
    """Return the reason without the path, which the text of an OSError repeats."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def load_game_file(path: str | os.PathLike[str], source: GameSource) -> Game:
    """Read one official game file; if `source` is a data directory, only a file inside it.

    Raises DataNotFoundError, GameFileError and InvalidOptionError.
    """
    file = source.path / path if isinstance(source, OfficialDirectory) else Path(path)
    try:
        file = file.resolve(strict=True)
    except (OSError, ValueError) as error:
        raise DataNotFoundError(
            f"no game file {quote(file)}: {_cause(error)}; give the path of a {GAME_FILE}"
        ) from error
    if isinstance(source, OfficialDirectory) and not file.is_relative_to(source.path):
        raise InvalidOptionError(
            f"game_file {quote(path)} is outside the data directory {source.path}; "
            "make the environment with data=PATH to play a single file"
        )
    return _read_one(file)[0]


def open_source(data: str | os.PathLike[str] | None, difficulty: str | None = None) -> GameSource:
    """Return the games that `data` names.

    None means the directory in the environment variable ALFWORLD_DATA if it is set and
    `difficulty` is not, otherwise generated games. Raises DataNotFoundError, GameFileError and
    InvalidOptionError.
    """
    origin = ""
    if data is None and difficulty is None and os.environ.get(DATA_VARIABLE):
        data = os.environ[DATA_VARIABLE]
        origin = f" (from ${DATA_VARIABLE})"
    _check_type(data)
    if data is None or data == GENERATED:
        return GeneratedGames(difficulty or "default")
    if difficulty is not None:
        raise InvalidOptionError(
            f"difficulty={difficulty!r} is the size of generated rooms, but data={str(data)!r} "
            "holds finished games: leave one of them out"
        )
    path = Path(data).expanduser()
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        raise DataNotFoundError(
            f"no ALFWorld data at {quote(path)}{origin}: {_cause(error)}; give an official data "
            f"directory, a packed file or a {GAME_FILE}, or data={GENERATED!r}"
        ) from error
    try:
        return _open_path(path.resolve(), (status.st_mtime_ns, status.st_size))
    except OSError as error:
        raise DataNotFoundError(
            f"ALFWorld data at {path}{origin} cannot be read: {error}"
        ) from error


def _check_type(data: object) -> None:
    if not isinstance(data, str | os.PathLike | None):
        came = type(data).__name__
        raise InvalidOptionError(f"data is {GENERATED!r} or the path of games, got {came}")


# One process makes many environments over the same data and needs to open it only once.
@lru_cache(maxsize=8)
def _open_path(path: Path, version: tuple[int, int]) -> GameSource:
    if path.is_dir():
        return OfficialDirectory(path)
    return PackedGames(path) if is_packed(path) else OneGame(path)
