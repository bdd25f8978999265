"""The official games of the reference data, `official_games.jsonl.xz`, as a packed file."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable
from pathlib import Path

from proxmo_envs.alfworld.games import Game, GameTexts, read_problem
from proxmo_envs.alfworld.official import SPLITS
from proxmo_envs.alfworld.packed import write_packed

Row = dict[str, str]


def read_rows(shared: Path, splits: Iterable[str]) -> list[Row]:
    """Return the games of some splits: id, split, task, pddl_problem and more."""
    starts = tuple(f'{{"id": "{split}/' for split in splits)
    with lzma.open(shared / "alfworld" / "official_games.jsonl.xz", "rt") as lines:
        return [json.loads(line) for line in lines if line.startswith(starts)]


def pack_rows(rows: Iterable[Row], path: Path) -> Path:
    """Pack the games of rows; return the path."""
    games: dict[str, list[tuple[Game, str]]] = {}
    for row in rows:
        texts, split = GameTexts(row["pddl_problem"], row["task"], "move"), row["split"]
        game = read_problem(texts, task_id=row["id"], split=split)
        games.setdefault(split, []).append((game, texts.content_hash))
    write_packed(path, {split: games[split] for split in SPLITS if split in games})
    return path
