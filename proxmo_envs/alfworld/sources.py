"""Where games come from: `data=` of the environment becomes what lists and loads games."""

from __future__ import annotations

import hashlib
import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from proxmo_envs.alfworld import generator
from proxmo_envs.alfworld.games import GAME_FILE, Game, Grammar, read_game_file
from proxmo_envs.alfworld.layouts import SETTINGS
from proxmo_envs.alfworld.official import (
    JSON_LINES,
    SPLITS,
    JsonLinesGames,
    Listing,
    OfficialDirectory,
)
from proxmo_envs.alfworld.packed import PackedGames, is_packed, write_packed
from proxmo_envs.errors import (
    DataNotFoundError,
    GameFileError,
    InvalidOptionError,
    ProxmoEnvError,
    UnknownTaskError,
    quote,
    unknown,
)

logger = logging.getLogger(__name__)

GENERATED = "generated"
DATA_VARIABLE = "ALFWORLD_DATA"


class GameSource(Protocol):
    """Lists and loads the games of one data set; shared by environments and threads."""

    def ids(self, split: str) -> tuple[str, ...]:
        """Return the sorted task ids of a split; InvalidOptionError when there is no such."""

    def game(self, task_id: str) -> Game:
        """Load a game; UnknownTaskError when there is no such task."""

    def content_hash(self, task_id: str) -> str:
        """Return the hash of what the game is."""

    def grammar(self, task_id: str) -> Grammar:
        """Return the grammar of a game."""


class GeneratedGames:
    """Procedural games; an id such as `generated/train/tiny/000123` says all about its game."""

    def __init__(self, difficulty: str = "default") -> None:
        """Make the games of one difficulty; any other can still be loaded by its id."""
        if difficulty not in generator.DIFFICULTIES:
            raise InvalidOptionError(unknown("difficulty", difficulty, generator.DIFFICULTIES))
        self.difficulty = difficulty

    def __deepcopy__(self, memo: dict[int, Any]) -> GeneratedGames:
        """Share the source: it never changes."""
        return self

    def ids(self, split: str) -> tuple[str, ...]:
        """Return the ids of a split; no game is generated for that."""
        sizes = generator.SPLIT_SIZES
        if split not in sizes:
            raise InvalidOptionError(unknown("split", split, sizes))
        return _generated_ids(split, self.difficulty)

    def game(self, task_id: str) -> Game:
        """Generate the game that `task_id` names."""
        split, difficulty, number = self._parts(task_id)
        return generator.generate(split, int(number), difficulty)

    def content_hash(self, task_id: str) -> str:
        """Hash the id: of a deterministic generator, its version and the id are the content."""
        version = SETTINGS[self._parts(task_id)[1]].version
        content = f"generator {version} {task_id}"
        return hashlib.sha256(content.encode()).hexdigest()

    def grammar(self, task_id: str) -> Grammar:
        """Return the newer grammar: all generated games speak it."""
        return "move"

    @staticmethod
    def _parts(task_id: str) -> tuple[str, str, str]:
        parts = task_id.split("/")
        if (
            len(parts) != 4
            or parts[0] != GENERATED
            or parts[1] not in generator.SPLIT_SIZES
            or parts[2] not in generator.DIFFICULTIES
            or not (parts[3].isascii() and parts[3].isdigit() and len(parts[3]) == 6)
        ):
            raise UnknownTaskError(
                f"unknown task {quote(task_id)}; ids of generated games are "
                f"{GENERATED}/SPLIT/DIFFICULTY/NUMBER with a split of "
                f"{', '.join(generator.SPLIT_SIZES)}, a difficulty of "
                f"{', '.join(generator.DIFFICULTIES)} and a number of six digits"
            )
        return parts[1], parts[2], parts[3]


# Environments share them: 10,000 ids take more memory than a live game.
@lru_cache
def _generated_ids(split: str, difficulty: str) -> tuple[str, ...]:
    numbers = range(generator.SPLIT_SIZES[split])
    return tuple(f"{GENERATED}/{split}/{difficulty}/{number:06d}" for number in numbers)


class OneGame:
    """A single game file: the only task of every split."""

    def __init__(self, path: Path) -> None:
        """Read the file."""
        self._game, self._hash = _read_one(path)

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

    def grammar(self, task_id: str) -> Grammar:
        """Return the grammar of the game."""
        return self._game.grammar


def _read_one(file: Path) -> tuple[Game, str]:
    """Read a game file outside any data set; its id is its folder: `split/task/trial`."""
    parts = file.resolve().parent.parts[-3:]
    return read_game_file(file, task_id="/".join(parts), split=parts[0])


def _cause(error: OSError | ValueError) -> str:
    """Return why, without the path that the text of an OSError repeats."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def load_game_file(path: str | os.PathLike[str], source: GameSource) -> Game:
    """Read one official game file; of a data directory only what lies in it.

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
    """Return the source that `data` names.

    None is the directory in the environment variable ALFWORLD_DATA where it is set and no
    `difficulty` is asked for, otherwise generated games. Raises DataNotFoundError, GameFileError
    and InvalidOptionError.
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
            f"difficulty={difficulty!r} sizes generated rooms, but data={str(data)!r} holds games "
            "as they are: leave one of them out"
        )
    path = Path(data).expanduser()
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        raise DataNotFoundError(
            f"no ALFWorld data at {quote(path)}{origin}: {_cause(error)}; give an official data "
            f"directory, a packed file, a .jsonl file or a {GAME_FILE}, or data={GENERATED!r}"
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


# One process makes many environments over the same data: it is listed and unpacked only once.
@lru_cache(maxsize=8)
def _open_path(path: Path, version: tuple[int, int]) -> GameSource:
    if path.is_dir():
        return OfficialDirectory(path)
    if is_packed(path):
        return PackedGames(path)
    if path.name.endswith(JSON_LINES):
        return JsonLinesGames(path)
    return OneGame(path)


def pack(
    data: str | os.PathLike[str],
    path: str | os.PathLike[str],
    splits: Iterable[str] | None = None,
) -> dict[str, Listing]:
    """Write the playable games of `data` into one packed file, which `data=` takes in their place.

    Args:
        data: an official directory, a .jsonl file, a packed file or an archive (.zip) of a
            directory.
        path: the packed file.
        splits: what to pack, by default those of the original that `data` has.

    Returns:
        For each split the ids that were packed and, of a directory, why others were left out.

    Raises:
        InvalidOptionError: there is nothing to pack; and what `open_source` and `unpacked` raise.
    """
    if Path(data).suffix == ".zip" and Path(data).is_file():
        # Here only: it brings the network modules, which playing does not need.
        from proxmo_envs.alfworld.download import unpacked

        with unpacked(Path(data)) as folder:
            try:
                return pack(folder, path, splits)
            except ProxmoEnvError as error:
                # The folder is gone when the message is read.
                raise type(error)(str(error).replace(str(folder), str(data))) from error
    source = open_source(data)
    if isinstance(source, (GeneratedGames, OneGame)):
        raise InvalidOptionError(
            f"{data}: a data set is packed, not generated games or a single {GAME_FILE}"
        )
    games: dict[str, list[tuple[Game, str]]] = {}
    listings: dict[str, Listing] = {}
    for split in _splits_of(source) if splits is None else splits:
        left_out: Counter[str] = Counter()
        if isinstance(source, OfficialDirectory):
            left_out.update(dict(source.listing(split).left_out))
        games[split] = []
        for task_id in source.ids(split):
            try:
                games[split].append((source.game(task_id), source.content_hash(task_id)))
            except GameFileError as error:
                logger.warning("left out: %s", error)
                left_out["unreadable game file"] += 1
        ids = tuple(game.task_id for game, _ in games[split])
        listings[split] = Listing(ids, tuple(sorted(left_out.items())))
    if not any(listing.ids for listing in listings.values()):
        reasons = {reason: n for one in listings.values() for reason, n in one.left_out}
        raise InvalidOptionError(f"{data}: no playable game to pack; left out: {reasons or 'none'}")
    write_packed(Path(path), games)
    return listings


def _splits_of(source: GameSource) -> Iterator[str]:
    for split in SPLITS:
        with suppress(InvalidOptionError):
            source.ids(split)
            yield split
