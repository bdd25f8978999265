"""The searching expert wins by reading; the plan wins without a wasted step."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from proxmo_envs.alfworld import expert, generator
from proxmo_envs.alfworld.games import (
    TASK_TYPES,
    Game,
    HouseholdGoal,
    Item,
    Receptacle,
    TaskType,
    read_game_file,
)
from proxmo_envs.alfworld.text import TASK_SENTENCES
from proxmo_envs.alfworld.world import Room, World

STEP_LIMIT = 50
FLAGS = frozenset({"pickupable", "cleanable", "heatable", "coolable"})


def play(game: Game, disturbance: float = 0.0, seed: int = 0) -> list[str] | None:
    """Let the searching expert play; its commands when it wins within the limit."""
    rng = np.random.default_rng(seed)
    world = World(Room(game))
    observation = world.welcome()
    searcher = expert.SearchingExpert()
    searcher.reset(observation)
    commands: list[str] = []
    for _ in range(STEP_LIMIT):
        admissible = world.admissible()
        command = searcher.act(observation, admissible)
        assert command in admissible, (game.task_id, commands, command)
        if rng.random() < disturbance:
            command = admissible[rng.integers(len(admissible))]
        commands.append(command)
        observation = world.act(command) or "Nothing happens."
        if world.won:
            return commands
    return None


def kitchen(goal: HouseholdGoal, task: str, **changes: object) -> Game:
    """A kitchen: a cup in a cabinet beside a drawer at the same place, a pan on two burners."""

    def receptacle(kind: str, n: int, place: int, *, openable: bool = False) -> Receptacle:
        return Receptacle(f"{kind}_bar__plus_0{n}_dot_00", kind, f"loc_bar_{place}", openable)

    cabinet, drawer = (receptacle(k, 1, 1, openable=True) for k in ("cabinet", "drawer"))
    fridge = receptacle("fridge", 1, 2, openable=True)
    microwave = receptacle("microwave", 1, 3, openable=True)
    burners = receptacle("stoveburner", 1, 4), receptacle("stoveburner", 2, 4)
    table = receptacle("diningtable", 1, 5)
    pan = Item("pan_bar_1", "pan", "loc_bar_4", tuple(b.id for b in burners), flags=FLAGS)
    cup = Item("cup_bar_1", "cup", "loc_bar_1", (cabinet.id,), flags=FLAGS)
    receptacles = (cabinet, drawer, fridge, microwave, *burners, table)
    game = Game(
        task_id="test/kitchen",
        task=task,
        goal=goal,
        start_location="loc_bar_9",
        receptacles=receptacles,
        items=(pan, cup),
        can_contain=frozenset((r.kind, kind) for r in receptacles for kind in ("cup", "pan")),
    )
    return replace(game, **changes)  # type: ignore[arg-type]


HOT_CUP = HouseholdGoal("pick_heat_then_place_in_recep", "cup", "diningtable")
COOL_PAN = HouseholdGoal("pick_cool_then_place_in_recep", "pan", "stoveburner")


@pytest.mark.parametrize("difficulty", generator.DIFFICULTIES)
@pytest.mark.parametrize("split", ["train", "valid_unseen"])
def test_the_searching_expert_wins_every_generated_game_within_the_step_limit(
    split: str, difficulty: str
) -> None:
    lost = [i for i in range(100) if not play(generator.generate(split, i, difficulty))]
    assert lost == []


@pytest.mark.parametrize("difficulty", generator.DIFFICULTIES)
def test_the_searching_expert_still_wins_when_some_of_its_actions_are_replaced(
    difficulty: str,
) -> None:
    games = [generator.generate("train", i, difficulty) for i in range(100)]
    won = [play(game, disturbance=0.15, seed=i) is not None for i, game in enumerate(games)]
    assert sum(won) >= 99


def test_in_the_tiny_difficulty_the_searching_expert_needs_few_steps() -> None:
    lengths = [len(play(generator.generate("train", i, "tiny")) or ()) for i in range(200)]
    assert 6 < np.mean(lengths) < 9
    assert max(lengths) <= 20


def test_the_searching_expert_plays_the_older_grammar() -> None:
    for i in range(40):
        game = replace(generator.generate("train", i, "small"), grammar="put")
        commands = play(game)
        assert commands is not None
        assert game.goal.lamp_kind or any(c.startswith("put ") for c in commands)


def test_the_searching_expert_looks_into_closed_furniture_and_treats_what_it_finds() -> None:
    assert play(kitchen(HOT_CUP, "put a hot cup in diningtable.")) == [
        "go to diningtable 1",
        "go to fridge 1",
        "open fridge 1",
        "go to microwave 1",
        "open microwave 1",
        "go to cabinet 1",
        "open cabinet 1",
        "take cup 1 from cabinet 1",
        "go to microwave 1",
        "heat cup 1 with microwave 1",
        "go to diningtable 1",
        "move cup 1 to diningtable 1",
    ]


def test_the_searching_expert_drops_what_somebody_else_made_it_take() -> None:
    game = kitchen(HOT_CUP, "put a hot cup in diningtable.")
    world = World(Room(game))
    observation = world.welcome()
    searcher = expert.SearchingExpert()
    searcher.reset(observation)
    for command in ("go to stoveburner 1", "take pan 1 from stoveburner 1"):
        searcher.act(observation, world.admissible())
        observation = world.act(command) or ""
    assert searcher.act(observation, world.admissible()) == "move pan 1 to stoveburner 1"


def test_asking_the_searching_expert_twice_gives_the_same_command() -> None:
    for i in range(20):
        world = World(Room(generator.generate("train", i, "small")))
        observation = world.welcome()
        searcher = expert.SearchingExpert()
        searcher.reset(observation)
        while not world.won:
            admissible = world.admissible()
            command = searcher.act(observation, admissible)
            assert searcher.act(observation, admissible) == command
            observation = world.act(command) or ""


def test_in_a_game_that_cannot_be_won_the_searching_expert_still_answers() -> None:
    game = kitchen(HOT_CUP, "put a hot cup in diningtable.")
    cold = tuple(r for r in game.receptacles if r.kind not in ("microwave", "diningtable"))
    assert play(replace(game, receptacles=cold)) is None


@pytest.mark.parametrize("task_type", TASK_TYPES)
def test_the_goal_is_read_from_both_sentences_of_each_task_type(task_type: TaskType) -> None:
    for sentence in TASK_SENTENCES[task_type]:
        task = sentence.format(thing="mug", target="desk")
        goal = expert.read_goal(f"You are here.\n\nYour task is to: {task}")
        assert goal.task_type == task_type
        assert goal.item_kind == "mug"
        assert (goal.receptacle_kind or goal.lamp_kind) == "desk"


def test_a_task_in_somebodys_own_words_is_refused_with_the_expected_form() -> None:
    with pytest.raises(ValueError, match="own task sentences"):
        expert.read_goal("Hello.\n\nYour task is to: tidy the desk up, please.")


@pytest.mark.parametrize("difficulty", generator.DIFFICULTIES)
def test_the_plan_wins_with_its_last_command_and_never_takes_longer_than_the_search(
    difficulty: str,
) -> None:
    for i in range(60):
        game = generator.generate("valid_seen", i, difficulty)
        world = World(Room(game))
        plan = expert.plan(game)
        for command in plan:
            assert not world.won
            assert world.act(command) is not None
        assert world.won
        assert len(plan) <= len(play(game) or ())


def test_the_plan_knows_that_a_pan_on_two_burners_stays_on_one_of_them() -> None:
    game = kitchen(COOL_PAN, "cool some pan and put it in stoveburner.")
    assert expert.plan(game) == [
        "go to stoveburner 2",
        "take pan 1 from stoveburner 2",
        "go to fridge 1",
        "cool pan 1 with fridge 1",
    ]


def test_a_plan_for_a_game_without_the_thing_is_refused() -> None:
    game = kitchen(HOT_CUP, "put a hot cup in diningtable.", items=())
    with pytest.raises(ValueError, match="test/kitchen"):
        expert.plan(game)


def test_both_experts_win_every_recorded_game(shared: Path) -> None:
    files = sorted((shared / "alfworld").rglob("game.tw-pddl"))
    assert len(files) >= 70
    for path in files:
        game, _ = read_game_file(path, task_id=path.parent.name, split="train")
        assert play(game) is not None, path
        world = World(Room(game))
        for command in expert.plan(game):
            assert not world.won, path
            world.act(command)
        assert world.won, path


def test_the_plan_is_as_short_as_that_of_the_original_planner(shared: Path) -> None:
    folder = shared / "alfworld"
    recorded = {}
    with gzip.open(folder / "transcripts" / "planner.jsonl.gz", "rt") as lines:
        for line in lines:
            episode = json.loads(line)
            recorded[episode["game"]] = episode["n_steps"]
    assert len(recorded) > 60
    for name, length in recorded.items():
        path = folder / "games" / name / "game.tw-pddl"
        game, _ = read_game_file(path, task_id=name, split="train")
        assert len(expert.plan(game)) <= length, name
