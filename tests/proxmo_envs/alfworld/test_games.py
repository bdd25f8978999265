"""Reading official game files, and saying what is wrong with broken ones."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from proxmo_envs.alfworld.games import (
    Game,
    GameTexts,
    Grammar,
    Item,
    TaskType,
    read_game_file,
)
from proxmo_envs.alfworld.generator import DIFFICULTIES, generate
from proxmo_envs.errors import GameFileError
from tests.proxmo_envs.alfworld.small import (
    KITCHEN,
    game_file_text,
    kitchen,
    problem_text,
    write_game,
)


def _hash(problem: str, task: str, grammar: Grammar) -> str:
    return GameTexts(problem, task, grammar).content_hash


def reread(game: Game, folder: Path) -> Game:
    """Write a game as an official file and read it again."""
    path = write_game(folder, game)
    return read_game_file(path, task_id=game.task_id, split=game.split)[0]


def in_order(game: Game) -> Game:
    """Sort everything in a game by id, as the reader does."""

    def sort(item: Item) -> Item:
        return replace(item, receptacles=tuple(sorted(item.receptacles)))

    return replace(
        game,
        receptacles=tuple(sorted(game.receptacles, key=lambda r: r.id)),
        items=tuple(sorted(map(sort, game.items), key=lambda i: i.id)),
    )


@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_a_game_is_read_as_it_was_written(difficulty: str, tmp_path: Path) -> None:
    games = [generate("valid_seen", number, difficulty) for number in range(20)]
    for game in [KITCHEN, *games]:
        assert reread(game, tmp_path) == in_order(game)
    if difficulty == "default":
        assert {game.goal.task_type for game in games} == set(get_args(TaskType))


@pytest.mark.parametrize("grammar", get_args(Grammar))
def test_a_game_file_tells_its_task_grammar_and_walkthrough(
    tmp_path: Path, grammar: Grammar
) -> None:
    path = tmp_path / "game.tw-pddl"
    path.write_text(game_file_text(kitchen(grammar=grammar, walkthrough=("look", "help"))))
    game, digest = read_game_file(path, task_id="a/b/c", split="a")
    assert (game.task, game.grammar, game.walkthrough) == (KITCHEN.task, grammar, ("look", "help"))
    assert (game.task_id, game.split) == ("a/b/c", "a")
    assert digest == _hash(problem_text(KITCHEN), KITCHEN.task, grammar)


def test_the_content_hash_depends_on_problem_task_and_grammar() -> None:
    hashes = {
        _hash("a problem", "a task", "move"),
        _hash("a problem.", "a task", "move"),
        _hash("a problem", "another task", "move"),
        _hash("a problem", "a task", "put"),
    }
    assert len(hashes) == 4


def _without(key: str) -> str:
    content = json.loads(game_file_text(KITCHEN))
    del content[key]
    return json.dumps(content)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "not a game file"),
        ("[" * 100_000, "not a game file"),
        (game_file_text(KITCHEN)[:-9], "not a game file"),
        ("[]", "a JSON object was expected"),
        (_without("pddl_problem"), "'pddl_problem' is missing"),
        (_without("grammar"), "'grammar' is missing"),
        (game_file_text(KITCHEN).replace("Your task", "My task"), "Your task is to"),
        (
            game_file_text(KITCHEN).replace("(:goal", "(:aim"),
            "no (:init ...) followed by (:goal ...)",
        ),
        (game_file_text(KITCHEN).replace("(:goal", "(:aim"), "game.tw-pddl: a/b/c: not an"),
        (
            game_file_text(KITCHEN).replace("Your task is to: ", "Your task is to: \\ud800"),
            "not text",
        ),
        (game_file_text(KITCHEN).replace("atLocation agent1", "isAt agent1"), "incomplete"),
        (game_file_text(KITCHEN).replace("receptacleAtLocation", "isAt"), "incomplete"),
        (
            game_file_text(KITCHEN).replace(
                "(inReceptacle mug_bar_1 countertop_bar_1)", "(inReceptacle mug_bar_1 moon_bar_1)"
            ),
            "moon_bar_1",
        ),
    ],
)
def test_a_broken_game_file_is_one_clear_error(
    tmp_path: Path, content: str, complaint: str
) -> None:
    path = tmp_path / "game.tw-pddl"
    path.write_text(content)
    with pytest.raises(GameFileError) as caught:
        read_game_file(path, task_id="a/b/c", split="a")
    assert complaint in str(caught.value) and len(str(caught.value)) < 500


def test_a_game_file_that_is_not_text_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "game.tw-pddl"
    path.write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(GameFileError, match="not a game file"):
        read_game_file(path, task_id="a/b/c", split="a")
