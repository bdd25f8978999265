"""A kitchen small enough to know by heart, with every kind of thing the rules speak of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from proxmo_envs.alfworld.games import Game, HouseholdGoal, Item, Receptacle
from tests.original.game_files import write_game

PICKUPABLE = "pickupable"
FOOD = frozenset({PICKUPABLE, "cleanable", "heatable", "coolable", "sliceable"})

# Locations: a corner with the cabinet and the shelf above it, one place each for the rest.
CORNER, TABLE, SINK, OVEN, COLD, FLOOR = (f"loc_bar_{k}" for k in range(1, 7))


def _fits(furniture: str, things: str) -> set[tuple[str, str]]:
    return {(kind, thing) for kind in furniture.split() for thing in things.split()}


KITCHEN = Game(
    task_id="own/kitchen/1",
    task="put a mug in cabinet.",
    goal=HouseholdGoal("pick_and_place_simple", "mug", "cabinet"),
    start_location=FLOOR,
    receptacles=(
        Receptacle("cabinet_bar_1", "cabinet", CORNER, openable=True),
        Receptacle("shelf_bar_1", "shelf", CORNER),
        Receptacle("countertop_bar_1", "countertop", TABLE),
        Receptacle("sink_bar_1_bar_sinkbasin", "sinkbasin", SINK),
        Receptacle("microwave_bar_1", "microwave", OVEN, openable=True),
        Receptacle("fridge_bar_1", "fridge", COLD, openable=True, opened=True),
    ),
    items=(
        Item("mug_bar_1", "mug", TABLE, ("countertop_bar_1",), flags=FOOD - {"sliceable"}),
        Item("mug_bar_2", "mug", CORNER, ("cabinet_bar_1",), flags=FOOD - {"sliceable"}),
        Item("apple_bar_1", "apple", TABLE, ("countertop_bar_1",), flags=FOOD),
        Item("apple_bar_2", "apple", COLD, ("fridge_bar_1",), flags=FOOD | {"iscool"}),
        Item("knife_bar_1", "knife", TABLE, ("countertop_bar_1",), flags=frozenset({PICKUPABLE})),
        Item(
            "bowl_bar_1",
            "bowl",
            TABLE,
            ("countertop_bar_1",),
            ("egg_bar_1",),
            frozenset({PICKUPABLE, "isreceptacleobject"}),
        ),
        Item("egg_bar_1", "egg", TABLE, flags=FOOD),
        Item(
            "desklamp_bar_1", "desklamp", CORNER, ("shelf_bar_1",), flags=frozenset({"toggleable"})
        ),
        Item("window_bar_1", "window"),
    ),
    can_contain=frozenset(
        _fits("cabinet shelf countertop fridge sinkbasin", "mug apple bowl egg")
        | _fits("countertop sinkbasin", "knife")
        | _fits("microwave", "mug apple")
    ),
    split="own",
)


def kitchen(**changes: object) -> Game:
    """Return the kitchen with other fields, for example another goal."""
    return replace(KITCHEN, **changes)  # type: ignore[arg-type]


def data_directory(root: Path) -> Path:
    """Write an official data directory: three playable games, and one for each reason not to be."""
    for split, trial in (("train", "trial_2"), ("train", "trial_1"), ("valid_seen", "trial_1")):
        task_id = f"{split}/pick_and_place_simple-Mug-None-Cabinet-1/{trial}"
        write_game(root, kitchen(task_id=task_id, split=split, walkthrough=("look",)))
    for task in (
        "pick_and_place_with_movable_recep-Mug-Bowl-Shelf-1",
        "pick_and_place_simple-AppleSliced-None-Shelf-1",
    ):
        write_game(root, kitchen(task_id=f"train/{task}/trial_1"))
    task = "train/pick_and_place_simple-Mug-None-Shelf-1"
    write_game(root, kitchen(task_id=f"{task}/trial_1"), solvable=False)
    write_game(root, kitchen(task_id=f"{task}/trial_2"), solvable=None)
    (root / task / "trial_3").mkdir()
    broken = write_game(root, kitchen(task_id=f"{task}/trial_4"))
    broken.write_bytes(broken.read_bytes()[:-20])
    return root
