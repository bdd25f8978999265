"""The packed file: nothing of a game is lost in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from proxmo_envs.alfworld.generator import generate
from proxmo_envs.alfworld.packed import Block, PackedGames, encode, is_packed, write_packed
from tests.proxmo_envs.alfworld.small import KITCHEN, kitchen

GAMES = [
    kitchen(task_id="train/b", walkthrough=("look", "go to shelf 1"), split="train"),
    kitchen(task_id="train/a", grammar="put", split="train"),
    *(replace(generate("train", k), task_id=f"train/g{k}") for k in range(5)),
]


def test_games_come_out_as_they_went_in(tmp_path: Path) -> None:
    path = tmp_path / "games.packed"
    write_packed(path, {"train": [(game, f"hash of {game.task_id}") for game in GAMES]})
    assert is_packed(path)
    source = PackedGames(path)
    assert source.ids("train") == tuple(sorted(game.task_id for game in GAMES))
    for game in GAMES:
        read = source.game(game.task_id)
        assert read == game and read.walkthrough == game.walkthrough
        assert source.content_hash(game.task_id) == f"hash of {game.task_id}"


def test_games_of_a_block_share_what_is_equal() -> None:
    block = Block(encode("train", [(game, "") for game in GAMES[:2]]))
    first, second = block.game("train/a"), block.game("train/b")
    assert first.can_contain is second.can_contain
    assert first.items[0].flags is second.items[0].flags


def test_a_text_may_hold_any_character(tmp_path: Path) -> None:
    game = kitchen(task_id="train/a", split="train", task="put | + a_bar_b \1 \x04 \\u0001 away.")
    write_packed(tmp_path / "games.packed", {"train": [(game, "")]})
    assert PackedGames(tmp_path / "games.packed").game("train/a") == game


def test_writing_leaves_no_partial_file(tmp_path: Path) -> None:
    path = tmp_path / "games.packed"
    write_packed(path, {"train": [(KITCHEN, "")]})
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write_packed(path, {"train": [(replace(KITCHEN, task=b"no text"), "")]})  # type: ignore[arg-type]
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["games.packed"]
