"""Thousands of games in one compact file that opens in 0.1 s and gives any game in 0.2 ms.

The official data set is 2.2 GB of folders; its playable games fit in about 1 MB. A packed file is a
.zip archive with one member per split, compressed by LZMA, and the name of the format as comment.
The first line of a member is a JSON object with everything the games share (ids, content hashes,
sets of flags, tables of what fits where); one line of JSON per game follows. A game is decoded only
when it is played.
"""

from __future__ import annotations

import json
import lzma
import os
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

from proxmo_envs.alfworld.game_source import GameSource, split_of
from proxmo_envs.alfworld.games import Game, HouseholdGoal, Item, Receptacle
from proxmo_envs.errors import GameFileError

FORMAT = b"proxmo-alfworld-games 2"
# How files of the first version begin, which were no .zip archives.
_FIRST_VERSION = b"proxmo-alfworld-games 1\n"
# What reading a damaged file raises; RuntimeError stands for a method of compression or a password.
_DAMAGE = (
    *(zipfile.BadZipFile, lzma.LZMAError, zlib.error, EOFError),
    *(LookupError, ValueError, TypeError, RuntimeError),
)
_REPAIR = "write it again by `proxmo data alfworld --from DATA --out FILE`"
# PDDL spells out the coordinates in an id. We shorten them to control characters: JSON escapes
# those in a text, so none occurs in a line otherwise.
_SPELLINGS = (("_bar_", "\1"), ("_plus_", "\2"), ("_minus_", "\3"), ("_dot_", "\4"))


class Block:
    """The games of one split in encoded form; immutable, shared by threads."""

    def __init__(self, content: bytes) -> None:
        """Index the games of an uncompressed member."""
        head, *records = content.split(b"\n")
        shared = json.loads(head)
        self.split: str = shared["split"]
        self.ids: tuple[str, ...] = tuple(shared["ids"])
        self.hashes: dict[str, str] = dict(zip(self.ids, shared["hashes"], strict=True))
        self._records = dict(zip(self.ids, records, strict=True))
        self._flags = [frozenset(flags) for flags in shared["flags"]]
        self._fits = [frozenset(map(tuple, pairs)) for pairs in shared["fits"]]

    def game(self, task_id: str) -> Game:
        """Decode one game."""
        line = self._records[task_id].decode()
        for long, short in _SPELLINGS:
            line = line.replace(short, long)
        task, goal, start, receptacles, items, fits, grammar, walkthrough = json.loads(line)
        flags = self._flags
        # One object for equal texts: a game repeats its places.
        texts: dict[Any, Any] = {}
        one = texts.setdefault
        return Game(
            task_id=task_id,
            task=task,
            goal=HouseholdGoal(*goal),
            start_location=one(start, start),
            receptacles=tuple(
                [
                    Receptacle(one(name, name), kind, one(at, at), *doors)
                    for name, kind, at, *doors in receptacles
                ]
            ),
            items=tuple(
                [
                    Item(name, kind, one(at, at), tuple(map(one, on, on)), tuple(holds), flags[k])
                    for name, kind, at, on, holds, k in items
                ]
            ),
            can_contain=self._fits[fits],
            grammar=grammar,
            split=self.split,
            walkthrough=tuple(walkthrough),
        )


def encode(split: str, games: Iterable[tuple[Game, str]]) -> bytes:
    """Encode games with their content hashes as the uncompressed content of a member."""
    flags: dict[frozenset[str], int] = {}
    fits: dict[frozenset[tuple[str, str]], int] = {}
    ordered = sorted(games, key=lambda pair: pair[0].task_id)
    lines = [_json(_record(game, flags, fits)) for game, _ in ordered]
    for long, short in _SPELLINGS:
        lines = [line.replace(long, short) for line in lines]
    shared = {
        "split": split,
        "ids": [game.task_id for game, _ in ordered],
        "hashes": [digest for _, digest in ordered],
        "flags": [sorted(one) for one in flags],
        "fits": [sorted(pairs) for pairs in fits],
    }
    return "\n".join([_json(shared), *lines]).encode()


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _record(
    game: Game, flags: dict[frozenset[str], int], fits: dict[frozenset[tuple[str, str]], int]
) -> list[Any]:
    """Return a game as rows; adds its sets to `flags` and `fits`, which the games share."""
    return [
        game.task,
        astuple(game.goal),
        game.start_location,
        [astuple(receptacle) for receptacle in game.receptacles],
        [[*astuple(item)[:-1], flags.setdefault(item.flags, len(flags))] for item in game.items],
        fits.setdefault(game.can_contain, len(fits)),
        game.grammar,
        game.walkthrough,
    ]


def write_packed(path: Path, splits: Mapping[str, Iterable[tuple[Game, str]]]) -> None:
    """Write the games of each split, with their content hashes, into one file at once."""
    members = {split: encode(split, games) for split, games in splits.items()}
    part = path.with_name(f"{path.name}.part")
    with zipfile.ZipFile(part, "w") as archive:
        archive.comment = FORMAT
        for split, content in members.items():
            # A ZipInfo without a date: the same games always give the same file.
            archive.writestr(zipfile.ZipInfo(split), content, zipfile.ZIP_LZMA)
    os.replace(part, path)


def is_packed(path: Path) -> bool:
    """Return whether a file begins like a packed file, of this version or another."""
    with path.open("rb") as file:
        return file.read(len(_FIRST_VERSION)).startswith((b"PK", _FIRST_VERSION))


class PackedGames(GameSource):
    """The games of a packed file; a split is read when it is first asked for."""

    def __init__(self, path: Path) -> None:
        """Read the names of the splits."""
        self.path = path
        self._blocks: dict[str, Block] = {}
        try:
            with zipfile.ZipFile(path) as archive:
                self.splits = archive.namelist()
                known = archive.comment == FORMAT
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise self._unreadable(f"damaged, or of an earlier version: {error}") from error
        if not known:
            raise self._unreadable(f"no {FORMAT.decode()!r}")

    def _unreadable(self, reason: str) -> GameFileError:
        return GameFileError(f"{self.path}: the packed file is {reason}; {_REPAIR}")

    def ids(self, split: str) -> tuple[str, ...]:
        """Return the sorted ids of a split."""
        self._check_split(split)
        return self._block(split).ids

    def game(self, task_id: str) -> Game:
        """Decode a game."""
        return self._block_of(task_id).game(task_id)

    def content_hash(self, task_id: str) -> str:
        """Return the content hash of a game."""
        return self._block_of(task_id).hashes[task_id]

    def _block_of(self, task_id: str) -> Block:
        split = split_of(task_id)
        block = self._block(split) if split in self.splits else None
        if block is None or task_id not in block.hashes:
            raise self._unknown_task(task_id, block.ids if block else ())
        return block

    def _block(self, split: str) -> Block:
        if split not in self._blocks:
            try:
                with zipfile.ZipFile(self.path) as archive:
                    self._blocks[split] = Block(archive.read(split))
            except _DAMAGE as error:
                raise self._unreadable(f"damaged: split {split!r}: {error!r}") from error
        return self._blocks[split]
