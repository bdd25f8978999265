"""The official data set as it is published: a directory of folders, or its problems as JSON lines.

What counts as playable is the original's rule: a task of the six types, without movable
receptacles and sliced things, whose folder has a game file that says it is solvable. What is left
out is counted with its reason.
"""

from __future__ import annotations

import gzip
import json
import lzma
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from proxmo_envs.alfworld.games import (
    GAME_FILE,
    TASK_TYPES,
    Game,
    Grammar,
    content_hash,
    read_game_file,
    read_problem,
    read_texts,
)
from proxmo_envs.alfworld.packed import Block, encode
from proxmo_envs.errors import (
    DataNotFoundError,
    GameFileError,
    InvalidOptionError,
    UnknownTaskError,
    quote,
    unknown,
)

# Inside the JSON strings of a game file quotes are escaped, so this finds the key only; parsing
# each of 4,652 files in full only to list them would take ten times as long.
_SOLVABLE = re.compile(rb'(?<!\\)"solvable"\s*:\s*(true|false)')
SPLITS = ("train", "valid_seen", "valid_unseen")
_ROW = ("id", "split", "task", "pddl_problem")
JSON_LINES = (".jsonl", ".jsonl.gz", ".jsonl.xz")


@dataclass(frozen=True, slots=True)
class Listing:
    """The playable tasks of a split, and why the other folders are left out."""

    ids: tuple[str, ...]
    left_out: tuple[tuple[str, int], ...]


class OfficialDirectory:
    """The games of an official data directory: `SPLIT/TASK/TRIAL/game.tw-pddl`."""

    def __init__(self, path: Path) -> None:
        """Find the splits; a split is listed once, when it is first asked for."""
        self.path = _root(path)
        self._listings: dict[str, Listing] = {}
        self.splits = sorted(entry.name for entry in self.path.iterdir() if entry.is_dir())

    def __deepcopy__(self, memo: dict[int, Any]) -> OfficialDirectory:
        """Share the source: what it gives does not change."""
        return self

    def ids(self, split: str) -> tuple[str, ...]:
        """Return the sorted ids of the playable games of a split."""
        return self.listing(split).ids

    def listing(self, split: str) -> Listing:
        """List a split: the playable games and what is left out."""
        if split not in self.splits:
            raise InvalidOptionError(f"{self.path}: {unknown('split', split, self.splits)}")
        listing = self._listings.get(split)
        if listing is None:
            try:
                listing = self._listings[split] = _list_split(self.path, split)
            except OSError as error:
                raise DataNotFoundError(f"{self.path}: cannot be listed: {error}") from error
        return listing

    def game(self, task_id: str) -> Game:
        """Read a game."""
        return read_game_file(self._file(task_id), task_id=task_id, split=_split(task_id))[0]

    def content_hash(self, task_id: str) -> str:
        """Return the content hash of a game; its file is read for that."""
        return read_texts(self._file(task_id)).content_hash

    def grammar(self, task_id: str) -> Grammar:
        """Return the grammar of a game; its file is read for that."""
        return read_texts(self._file(task_id)).grammar

    def _file(self, task_id: str) -> Path:
        # Only what is listed is opened: an id cannot lead out of the directory.
        split = _split(task_id)
        ids = self.ids(split) if split in self.splits else ()
        if task_id not in ids:
            known = ids or [f"{split}/..." for split in self.splits]
            raise UnknownTaskError(f"{self.path}: {unknown('task', task_id, known)}")
        return self.path / task_id / GAME_FILE


def _split(task_id: str) -> str:
    """Return the split of an official game: the first part of its id."""
    return task_id.partition("/")[0]


def _root(path: Path) -> Path:
    """Return the directory that holds the splits: `path` itself or the newest `json_*` in it."""
    for root in (path, *sorted(path.glob("json_*"), reverse=True)):
        if any((root / split).is_dir() for split in SPLITS):
            return root
    raise DataNotFoundError(
        f"{path} is not an ALFWorld data directory: one of the folders {', '.join(SPLITS)} was "
        "expected in it (or in a folder json_2.1.1 in it)"
    )


def _list_split(root: Path, split: str) -> Listing:
    ids: list[str] = []
    left_out: Counter[str] = Counter()
    for task in (root / split).iterdir():
        for trial in task.iterdir() if task.is_dir() else ():
            if not trial.is_dir():
                continue
            reason = _reason_to_leave_out(trial)
            if reason is None:
                ids.append(f"{split}/{task.name}/{trial.name}")
            else:
                left_out[reason] += 1
    return Listing(tuple(sorted(ids)), tuple(sorted(left_out.items())))


def _reason_to_leave_out(trial: Path) -> str | None:
    """Return why the folder of a trial is not played; None when it is."""
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


class JsonLinesGames:
    """Games as JSON lines, one object a game: id, split, task, pddl_problem, perhaps grammar."""

    def __init__(self, path: Path) -> None:
        """Remember the file; a split is read when it is first asked for."""
        self._path = path
        self._blocks: dict[str, Block] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> JsonLinesGames:
        """Share the source: what it gives does not change."""
        return self

    def ids(self, split: str) -> tuple[str, ...]:
        """Return the sorted ids of a split."""
        return self._block(split).ids

    def game(self, task_id: str) -> Game:
        """Return a game."""
        return self._holding(task_id).game(task_id)

    def content_hash(self, task_id: str) -> str:
        """Return the content hash of a game."""
        return self._holding(task_id).content_hash(task_id)

    def grammar(self, task_id: str) -> Grammar:
        """Return the grammar of a game."""
        return self._holding(task_id).grammar(task_id)

    def _holding(self, task_id: str) -> Block:
        try:
            block = self._block(_split(task_id))
        except InvalidOptionError as error:
            raise UnknownTaskError(f"unknown task {quote(task_id)}: {error}") from error
        if task_id not in block:
            raise UnknownTaskError(f"{self._path}: {unknown('task', task_id, block.ids)}")
        return block

    def _block(self, split: str) -> Block:
        block = self._blocks.get(split)
        if block is None:
            seen: set[str] = set()
            games: dict[str, tuple[Game, str]] = {}
            for row in self._rows():
                seen.add(row["split"])
                if row["id"] in games:
                    raise GameFileError(f"{self._path}: {quote(row['id'])} is in it twice")
                if row["split"] == split:
                    games[row["id"]] = self._game(row)
            if not seen:
                raise GameFileError(f"{self._path}: no game is in it")
            if not games:
                raise InvalidOptionError(f"{self._path}: {unknown('split', split, seen)}")
            # Encoded, a game takes 3 kB instead of the 54 kB of its line.
            block = self._blocks[split] = Block(encode(split, games.values()))
        return block

    def _rows(self) -> Iterator[dict[str, Any]]:
        try:
            with _open(self._path) as lines:
                for number, line in enumerate(lines, 1):
                    if line.strip():
                        yield self._row(number, line)
        except (OSError, EOFError, lzma.LZMAError) as error:
            raise GameFileError(f"{self._path}: cannot be read to its end: {error}") from error

    def _row(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise GameFileError(f"{self._path}: line {number} is not JSON: {error}") from error
        if not isinstance(row, dict) or not all(isinstance(row.get(key), str) for key in _ROW):
            raise GameFileError(
                f"{self._path}: line {number}: a JSON object with the texts {', '.join(_ROW)} "
                "was expected"
            )
        if not row["id"].startswith(f"{row['split']}/"):
            raise GameFileError(
                f"{self._path}: line {number}: the id {row['id']!r} does not begin with its "
                f"split {row['split']!r}"
            )
        if row.get("grammar", "move") not in ("move", "put"):
            expected = unknown("grammar", row["grammar"], ("move", "put"))
            raise GameFileError(f"{self._path}: line {number}: {expected}")
        return row

    def _game(self, row: dict[str, Any]) -> tuple[Game, str]:
        grammar, problem, task = row.get("grammar", "move"), row["pddl_problem"], row["task"]
        try:
            game = read_problem(
                problem, task_id=row["id"], task=task, split=row["split"], grammar=grammar
            )
        except GameFileError as error:
            raise GameFileError(f"{self._path}: {error}") from error
        return game, content_hash(problem, task, grammar)


def _open(path: Path) -> IO[bytes]:
    if path.suffix == ".xz":
        return lzma.open(path, "rb")
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    return path.open("rb")
