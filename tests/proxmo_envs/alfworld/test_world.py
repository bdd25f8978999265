"""The rules of the ALFWorld text world, one by one, in a kitchen made for it."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from proxmo_envs.alfworld.games import Game, HouseholdGoal
from proxmo_envs.alfworld.generator import generate
from proxmo_envs.alfworld.room import Room
from proxmo_envs.alfworld.world import World
from tests.proxmo_envs.alfworld.small import CORNER, KITCHEN, kitchen


def play(game: Game, *commands: str) -> tuple[World, list[str | None]]:
    """Play commands in a new world; return the world and what it said."""
    world = World(Room(game))
    return world, [world.act(command) for command in commands]


def said(*commands: str, game: Game = KITCHEN) -> str | None:
    """Return what the world says to the last of the commands."""
    return play(game, *commands)[1][-1]


def test_the_first_observation_lists_the_furniture_and_the_task() -> None:
    assert World(Room(KITCHEN)).welcome() == (
        "-= Welcome to TextWorld, ALFRED! =-\n\n"
        "You are in the middle of a room. Looking quickly around you, you see a cabinet 1, "
        "a countertop 1, a fridge 1, a microwave 1, a shelf 1, and a sinkbasin 1.\n\n"
        "Your task is to: put a mug in cabinet."
    )


def test_an_agent_that_starts_at_furniture_sees_what_look_says() -> None:
    world = World(Room(kitchen(start_location=CORNER)))
    assert "\n\nYou are facing the cabinet 1, and shelf 1. Next to it, you see nothing.\n\n" in (
        world.welcome()
    )


TAKE_MUG = "go to countertop 1; take mug 2 from countertop 1"
TAKE_KNIFE = "go to countertop 1; take knife 1 from countertop 1"


@pytest.mark.parametrize(
    ("commands", "answer"),
    [
        ("go to fridge 1; open fridge 1", None),
        ("go to cabinet 1; take mug 1 from cabinet 1", None),
        ("go to countertop 1; examine mug 2", None),
        ("take mug 2 from countertop 1", None),
        # With a mug in the hand.
        (f"{TAKE_MUG}; inventory", "You are carrying: a mug 2."),
        (f"{TAKE_MUG}; take apple 2 from countertop 1", None),
        (f"{TAKE_MUG}; go to cabinet 1; move mug 2 to cabinet 1", None),
        (f"{TAKE_MUG}; go to fridge 1; heat mug 2 with fridge 1", None),
        # Heating undoes cooling, and clean things stay clean.
        (
            f"{TAKE_MUG}; go to sinkbasin 1; clean mug 2 with sinkbasin 1; go to fridge 1; "
            "cool mug 2 with fridge 1; go to microwave 1; heat mug 2 with microwave 1; "
            "examine mug 2",
            "This is a hot and clean mug 2.",
        ),
        # A knife slices things here, even behind a closed door.
        (f"{TAKE_KNIFE}; slice apple 2 with knife 1", "You sliced the apple 2 with the knife 1."),
        (
            f"{TAKE_KNIFE}; go to fridge 1; close fridge 1; slice apple 1 with knife 1",
            "You sliced the apple 1 with the knife 1.",
        ),
        (f"{TAKE_KNIFE}; slice apple 1 with knife 1", None),
        ("go to countertop 1; slice apple 2 with knife 1", None),
        (
            f"{TAKE_KNIFE}; slice apple 2 with knife 1; move knife 1 to countertop 1; "
            "take apple 2 from countertop 1; examine apple 2",
            "This is a sliced apple 2.",
        ),
        (
            "go to countertop 1; take bowl 1 from countertop 1; examine bowl 1",
            "This is a normal bowl 1. In it, you see a egg 1.",
        ),
        # A lamp that is on can be turned on again.
        ("go to shelf 1; use desklamp 1; use desklamp 1", "You turn on the desklamp 1."),
        ("use desklamp 1", None),
    ],
)
def test_the_world_answers_in_the_words_of_the_original(commands: str, answer: str | None) -> None:
    assert said(*commands.split("; ")) == answer


TAKEN = TAKE_MUG.split("; ")


@pytest.mark.parametrize("command", ["  look  ", "\tlook\n"])
def test_white_space_around_a_command_is_forgiven(command: str) -> None:
    assert said(command) is not None


@pytest.mark.parametrize(
    "command",
    [
        "",
        "LOOK",
        "look.",
        "go  to shelf 1",
        "go to the shelf 1",
        "go to shelf 01",
        "look around",
        "go",
        "go to",
        "go to ",
        "take",
        "take  from ",
        "help me",
        "examine",
        "use",
        "put mug 2 in/on shelf 1",
        "ſhelf",
        "x" * 1_000_000,
    ],
)
def test_everything_else_does_nothing(command: str) -> None:
    world = World(Room(KITCHEN))
    before = world.admissible()
    assert world.act(command) is None
    assert world.admissible() == before


@pytest.mark.parametrize(
    ("goal", "commands", "met"),
    [
        (
            HouseholdGoal("pick_and_place_simple", "mug", "shelf"),
            [*TAKEN, "go to shelf 1"],
            [0, 0, 0],
        ),
        (
            HouseholdGoal("pick_and_place_simple", "mug", "shelf"),
            [*TAKEN, "go to shelf 1", "move mug 2 to shelf 1"],
            [0, 0, 0, 1],
        ),
        (
            HouseholdGoal("pick_two_obj_and_place", "mug", "cabinet"),
            [*TAKEN, "go to cabinet 1", "open cabinet 1", "move mug 2 to cabinet 1"],
            [1, 1, 1, 1, 2],
        ),
        (
            HouseholdGoal("pick_heat_then_place_in_recep", "mug", "sinkbasin"),
            [
                *TAKEN,
                "go to microwave 1",
                "heat mug 2 with microwave 1",
                "go to sinkbasin 1",
                "move mug 2 to sinkbasin 1",
            ],
            [0, 0, 0, 1, 1, 3],
        ),
        (
            # Cooled already, but another one than the one that lies there.
            HouseholdGoal("pick_cool_then_place_in_recep", "apple", "countertop"),
            [
                "look",
                "go to fridge 1",
                "take apple 1 from fridge 1",
                "go to countertop 1",
                "move apple 1 to countertop 1",
            ],
            [2, 2, 2, 2, 3],
        ),
        (
            HouseholdGoal("look_at_obj_in_light", "mug", lamp_kind="desklamp"),
            [
                "go to shelf 1",
                "use desklamp 1",
                "go to countertop 1",
                "take mug 2 from countertop 1",
                "go to cabinet 1",
            ],
            [0, 1, 0, 1, 2],
        ),
    ],
)
def test_conditions_of_the_goal_are_counted(
    goal: HouseholdGoal, commands: list[str], met: list[int]
) -> None:
    world = World(Room(kitchen(goal=goal)))
    counted = []
    for command in commands:
        assert world.act(command) is not None, command
        counted.append(world.conditions[0])
        assert world.won == (world.conditions[0] == world.conditions[1])
    assert counted == met


def test_a_copy_goes_its_own_way() -> None:
    world, _ = play(KITCHEN, "go to countertop 1")
    twin = copy.deepcopy(world)
    before = world.admissible()
    assert twin.room is world.room
    twin.act("take mug 2 from countertop 1")
    twin.act("go to cabinet 1")
    twin.act("open cabinet 1")
    assert (
        world.admissible() == before and world.act("inventory") == "You are not carrying anything."
    )
    assert world.act("take mug 2 from countertop 1") is not None
    assert twin.act("close cabinet 1") is not None


@pytest.mark.parametrize("seed", range(12))
def test_admissible_commands_are_exactly_those_that_work(seed: int) -> None:
    """Walks through generated rooms: all listed commands work, and no other combination does."""
    rng = np.random.default_rng(seed)
    difficulty = ("tiny", "default")[seed % 2]
    game = generate("train", seed, difficulty)
    world = World(Room(game, ("move", "put")[seed // 2 % 2]))
    for _ in range(25):
        admissible = world.admissible()
        assert admissible == sorted(set(admissible))
        for command in admissible:
            assert copy.deepcopy(world).act(command) is not None, command
        for command in rng.permutation(_all_commands(world.room))[:300]:
            if command not in admissible:
                assert world.act(str(command)) is None, command
        world.act(str(rng.choice(admissible)))


def _all_commands(room: Room) -> list[str]:
    furniture, things = room.receptacles, room.items
    one = [
        f"{verb} {x}"
        for verb in ("go to", "open", "close", "examine", "use")
        for x in furniture + things
    ]
    forms = (
        "take {} from {}",
        "move {} to {}",
        "put {} in/on {}",
        "clean {} with {}",
        "heat {} with {}",
        "cool {} with {}",
        "slice {} with {}",
    )
    two = [form.format(x, y) for form in forms for x in things for y in furniture[:6] + things[:6]]
    return [*one, *two, "help", "look", "inventory"]
