"""The official data set as published, and packing it into one file.

We play what the original plays: tasks of the six types, without movable receptacles and sliced
objects, whose folder has a game file marked as solvable. We count the other folders by reason.
"""

from __future__ import annotations

import logging
import os
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from proxmo_envs.alfworld.game_source import GameSource, split_of
from proxmo_envs.alfworld.games import (
    GAME_FILE,
    TASK_TYPES,
    Game,
    Grammar,
    read_game_file,
    read_texts,
)
from proxmo_envs.alfworld.packed import write_packed
from proxmo_envs.errors import DataNotFoundError, GameFileError, InvalidOptionError

logger = logging.getLogger(__name__)

# Quotes inside the JSON strings of a game file are escaped, so this finds only the key. Parsing
# 4,652 files in full to list them would take ten times as long.
_SOLVABLE = re.compile(rb'(?<!\\)"solvable"\s*:\s*(true|false)')
SPLITS = ("train", "valid_seen", "valid_unseen")


@dataclass(frozen=True, slots=True)
class Listing:
    """The playable tasks of a split, and the number of other folders by reason."""

    ids: tuple[str, ...]
    left_out: Mapping[str, int]


class OfficialDirectory(GameSource):
    """The games of an official data directory: `SPLIT/TASK/TRIAL/game.tw-pddl`."""

    def __init__(self, path: Path) -> None:
        """Find the splits; each is listed when it is first asked for."""
        self.path = _root(path)
        self.splits = sorted(entry.name for entry in self.path.iterdir() if entry.is_dir())
        self._listings: dict[str, Listing] = {}

    def ids(self, split: str) -> tuple[str, ...]:
        """Return the sorted ids of the playable games of a split."""
        return self.listing(split).ids

    def listing(self, split: str) -> Listing:
        """List the playable games of a split and count the others."""
        self._check_split(split)
        if split not in self._listings:
            ids: list[str] = []
            left_out: Counter[str] = Counter()
            try:
                for task_id in self._trials(split):
                    reason = _reason_to_leave_out(self.path / task_id)
                    if reason is None:
                        ids.append(task_id)
                    else:
                        left_out[reason] += 1
            except OSError as error:
                raise DataNotFoundError(f"{self.path}: cannot be listed: {error}") from error
            self._listings[split] = Listing(tuple(sorted(ids)), dict(sorted(left_out.items())))
        return self._listings[split]

    def _trials(self, split: str) -> Iterable[str]:
        """Yield the folders of a split that should hold a game."""
        for task in (self.path / split).iterdir():
            for trial in task.iterdir() if task.is_dir() else ():
                if trial.is_dir():
                    yield f"{split}/{task.name}/{trial.name}"

    def read(self, task_id: str) -> tuple[Game, str]:
        """Read a game and its content hash."""
        return read_game_file(self._file(task_id), task_id=task_id, split=split_of(task_id))

    def game(self, task_id: str) -> Game:
        """Read a game."""
        return self.read(task_id)[0]

    def content_hash(self, task_id: str) -> str:
        """Read the file of a game and return its content hash."""
        return read_texts(self._file(task_id)).content_hash

    def grammar(self, task_id: str) -> Grammar:
        """Read the file of a game and return its grammar."""
        return read_texts(self._file(task_id)).grammar

    def _file(self, task_id: str) -> Path:
        # We open only listed files, so an id cannot lead out of the directory.
        split = split_of(task_id)
        ids = self.ids(split) if split in self.splits else ()
        if task_id not in ids:
            raise self._unknown_task(task_id, ids)
        return self.path / task_id / GAME_FILE


class OfficialArchive(OfficialDirectory):
    """An official data directory inside a .zip archive, read without unpacking it."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        """Find the splits."""
        self._archive = archive
        # It reads like a `Path`, but `iterdir` goes through the names of the whole archive.
        super().__init__(cast(Path, zipfile.Path(archive)))

    def _trials(self, split: str) -> Iterable[str]:
        root = cast(zipfile.Path, self.path).at
        trial = re.compile(f"{re.escape(root)}({split}/[^/]+/[^/]+)/")
        return {match[1] for match in map(trial.match, self._archive.namelist()) if match}


def _root(path: Path) -> Path:
    """Return the directory that holds the splits: `path` itself or the newest `json_*` in it."""
    inside = [entry for entry in path.iterdir() if entry.name.startswith("json_")]
    for root in (path, *sorted(inside, key=lambda entry: entry.name, reverse=True)):
        if any((root / split).is_dir() for split in SPLITS):
            return root
    raise DataNotFoundError(
        f"{path} is not an ALFWorld data directory: expected one of the folders "
        f"{', '.join(SPLITS)} in it (or in a folder json_2.1.1 in it)"
    )


def _reason_to_leave_out(trial: Path) -> str | None:
    """Return why we do not play the game of a folder; None when we do."""
    task = trial.parent.name
    if "movable" in task:
        return "movable receptacle"
    if "Sliced" in task:
        return "sliced object"
    if task.partition("-")[0] not in TASK_TYPES:
        return "other task type"
    try:
        content = (trial / GAME_FILE).read_bytes()
    except FileNotFoundError:
        return "no game file"
    except OSError:
        return "unreadable game file"
    solvable = _SOLVABLE.search(content)
    if not content.rstrip().endswith(b"}"):
        return "truncated game file"
    if solvable is None:
        return "not marked as solvable or not"
    return None if solvable[1] == b"true" else "marked unsolvable"


def pack(data: str | os.PathLike[str], path: str | os.PathLike[str]) -> dict[str, Listing]:
    """Write the playable games of `data` into one file, which `data=` takes instead.

    Args:
        data: an official data directory, or a .zip archive of one.
        path: the packed file.

    Returns:
        For each split the packed ids and the number of games left out by reason.

    Raises:
        DataNotFoundError: `data` is no official data directory.
        GameFileError: the archive is damaged.
        InvalidOptionError: there is no playable game.
    """
    data = Path(data)
    if data.is_dir():
        return _pack(OfficialDirectory(data), Path(path))
    try:
        with zipfile.ZipFile(data) as archive:
            return _pack(OfficialArchive(archive), Path(path))
    # A RuntimeError is an unknown method of compression, or a password.
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise GameFileError(
            f"{data}: neither an official data directory nor a readable .zip archive of one "
            f"({error}); download a damaged archive again"
        ) from error


def _pack(source: OfficialDirectory, path: Path) -> dict[str, Listing]:
    games: dict[str, list[tuple[Game, str]]] = {}
    listings: dict[str, Listing] = {}
    for split in (split for split in SPLITS if split in source.splits):
        left_out = Counter(source.listing(split).left_out)
        games[split] = []
        for task_id in source.ids(split):
            try:
                games[split].append(source.read(task_id))
            except GameFileError as error:
                logger.warning("left out: %s", error)
                left_out["unreadable game file"] += 1
        listings[split] = Listing(tuple(game.task_id for game, _ in games[split]), left_out)
    if not any(games.values()):
        reasons = sum((Counter(one.left_out) for one in listings.values()), Counter[str]())
        raise InvalidOptionError(
            f"{source.path}: no playable game to pack; left out: {dict(reasons) or 'none'}"
        )
    write_packed(path, games)
    return listings
