"""Games written as official folders are the games they were written from.

That the original engine plays them, too, shows tests/original/compare.py, which is run by hand.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from proxmo_envs.alfworld import generator, vocabulary
from proxmo_envs.alfworld.games import GAME_FILE, Game, Item, read_game_file
from proxmo_envs.alfworld.official import OfficialDirectory
from proxmo_envs.alfworld.pddl import camel, domain_text, grammar_text
from proxmo_envs.alfworld.planner import plan
from proxmo_envs.alfworld.writer import TRAJECTORY_FILE, draw, write_game, write_generated
from proxmo_envs.errors import InvalidOptionError
from tests.proxmo_envs.alfworld.small import KITCHEN


def in_order(game: Game) -> Game:
    """Sort what a game holds by id, as the reader does; the folder is another id."""

    def sort(item: Item) -> Item:
        return replace(
            item,
            receptacles=tuple(sorted(item.receptacles)),
            contents=tuple(sorted(item.contents)),
        )

    return replace(
        game,
        task_id="",
        receptacles=tuple(sorted(game.receptacles, key=lambda r: r.id)),
        items=tuple(sorted(map(sort, game.items), key=lambda i: i.id)),
    )


@pytest.mark.parametrize("difficulty", generator.DIFFICULTIES)
def test_written_games_are_read_as_they_were_generated(tmp_path: Path, difficulty: str) -> None:
    folders = list(write_generated(tmp_path, "valid_seen", range(20), difficulty))
    for number, folder in enumerate(folders):
        game, _ = read_game_file(folder / GAME_FILE, task_id="", split="valid_seen")
        generated = generator.generate("valid_seen", number, difficulty)
        assert game == in_order(generated)
        assert list(game.walkthrough) == plan(generated)


def test_a_written_directory_is_an_official_one(tmp_path: Path) -> None:
    folders = list(write_generated(tmp_path, "train", range(30), "tiny"))
    source = OfficialDirectory(tmp_path)
    assert len(set(folders)) == 30
    assert source.ids("train") == tuple(sorted(str(f.relative_to(tmp_path)) for f in folders))
    assert source.listing("train").left_out == ()


def test_folders_and_trajectories_say_what_the_original_reads_there(tmp_path: Path) -> None:
    kinds = set()
    for folder in write_generated(tmp_path, "valid_unseen", range(40), "small"):
        said = json.loads((folder / TRAJECTORY_FILE).read_text())
        game, _ = read_game_file(folder / GAME_FILE, task_id="", split="")
        task_type, thing, movable, target, scene = folder.parent.name.split("-")
        params, goal = said["pddl_params"], game.goal
        assert said["task_type"] == task_type == goal.task_type
        assert movable == "None" and params["mrecep_target"] == ""
        assert params["object_target"] == thing and thing.lower() == goal.item_kind
        assert target in (params["parent_target"], params["toggle_target"])
        assert target.lower() in (goal.receptacle_kind, goal.lamp_kind)
        assert said["scene"] == {"floor_plan": f"FloorPlan{scene}", "scene_num": int(scene)}
        assert said["turk_annotations"]["anns"][0]["task_desc"] == game.task
        kinds.add(task_type)
    assert kinds == set(vocabulary.TASK_TYPES)


def test_scenes_are_numbered_by_room_and_unseen_ones_are_others() -> None:
    scenes: dict[str, set[int]] = {}
    for split in generator.SPLIT_SIZES:
        for number in range(300):
            game = generator.generate(split, number, "tiny")
            room = vocabulary.room_of(r.kind for r in game.receptacles)
            scene = generator.scene(split, number, "tiny")
            hundreds = {"kitchen": 0, "livingroom": 2, "bedroom": 3, "bathroom": 4}[room]
            assert scene // 100 == hundreds and scene % 100 > 0
            scenes.setdefault(split, set()).add(scene)
    known = scenes["train"] | scenes["valid_seen"]
    assert max(scene % 100 for scene in known) < min(s % 100 for s in scenes["valid_unseen"])


def test_kinds_are_spelled_as_in_official_files(shared: Path) -> None:
    names = set()
    for path in (shared / "alfworld" / "games").glob("*/*/*/game.tw-pddl"):
        problem = json.loads(path.read_text())["pddl_problem"]
        names |= set(re.findall(r"(?:receptacleType|objectType) \S+ (\w+)Type\)", problem))
    assert len(names) > 80
    assert {camel(name.lower()) for name in names} == names


def test_the_grammar_speaks_both_grammars() -> None:
    new, old = grammar_text("look.", "move"), grammar_text("look.", "put")
    assert "move {o} to {r}" in new and "action help" in new and "put {o}" not in new
    assert "put {o} in/on {r}" in old and "action help" not in old and "{l.name}" in old
    for text, domain in ((new, domain_text("move")), (old, domain_text("put"))):
        commanded = re.findall(r"^action (\w+)", text, re.MULTILINE)
        assert sorted(commanded) == sorted(re.findall(r":action (\w+)", domain))


def test_a_game_that_cannot_be_won_is_not_written(tmp_path: Path) -> None:
    impossible = replace(KITCHEN, items=())
    with pytest.raises(ValueError, match="no plan"):
        write_game(tmp_path, impossible, scene=1, trial="trial_1")
    assert not list(tmp_path.rglob(GAME_FILE))


def test_games_are_drawn_without_repetition() -> None:
    assert draw(3) == [0, 1, 2]
    numbers = draw(1000, seed=5)
    assert len(set(numbers)) == 1000 and draw(1000, seed=5) == numbers != draw(1000, seed=6)
    with pytest.raises(InvalidOptionError):
        draw(1_000_001)
