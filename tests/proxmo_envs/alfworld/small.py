"""A kitchen small enough to know by heart, with every kind of thing the rules speak of."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from proxmo_envs.alfworld.games import GAME_FILE, Game, HouseholdGoal, Item, Receptacle

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


def problem_text(game: Game) -> str:
    """Write a game as the PDDL problem of an official game file, in mixed case as those are."""
    facts = [f"(atLocation agent1 {game.start_location})"]
    for r in game.receptacles:
        facts += [f"(receptacleType {r.id} {r.kind.title()}Type)"]
        facts += [f"(receptacleAtLocation {r.id} {r.location})"]
        facts += [f"(openable {r.id})"] * r.openable + [f"(opened {r.id})"] * r.opened
    for i in game.items:
        facts += [f"(objectType {i.id} {i.kind.title()}Type)"]
        facts += [f"(objectAtLocation {i.id} {i.location})"] * (i.location is not None)
        facts += [f"(inReceptacle {i.id} {r})" for r in i.receptacles]
        facts += [f"(inReceptacleObject {inner} {i.id})" for inner in i.contents]
        facts += [f"({flag} {i.id})" for flag in sorted(i.flags)]
    facts += [f"(canContain {r.title()}Type {i.title()}Type)" for r, i in sorted(game.can_contain)]
    facts += ["(= (distance loc_bar_1 loc_bar_2) 3) ; costs are not used"]
    return (
        "(define (problem kitchen)\n (:domain alfred)\n (:objects agent1 - agent Mug - object)\n"
        " (:init\n  " + "\n  ".join(facts) + f"\n )\n{_goal_text(game.goal)}\n)"
    )


def _goal_text(goal: HouseholdGoal) -> str:
    thing = f"(objectType ?o {goal.item_kind.title()}Type)"
    if goal.lamp_kind is not None:
        return (
            f"(:goal (and (objectType ?ot {goal.lamp_kind.title()}Type) (isToggled ?ot) "
            f"(inReceptacle ?ot ?r) {thing} (holds ?a ?o)))"
        )
    placed = f"{thing} (receptacleType ?r {goal.receptacle_kind.title()}Type) (inReceptacle ?o ?r)"
    if goal.task_type == "pick_two_obj_and_place":
        placed += f" (not (= ?o ?o2)) {thing.replace('?o', '?o2')} (inReceptacle ?o2 ?r)"
    for verb, state in (("clean", "isClean"), ("heat", "isHot"), ("cool", "isCool")):
        if goal.task_type == f"pick_{verb}_then_place_in_recep":
            placed += f" ({state} ?o)"
    return f"(:goal (and (exists (?r - receptacle ?o - object) (and {placed}))))"


def game_file_text(game: Game, *, solvable: bool | None = True) -> str:
    """Write a game as the content of an official game file."""
    template = "move {o} to {r}" if game.grammar == "move" else "put {o} in/on {r}"
    content: dict[str, object] = {
        "grammar": f'"rhs": "Your task is to: {game.task}"\n template :: "{template}";',
        "pddl_problem": problem_text(game),
    }
    if solvable is not None:
        content["solvable"] = solvable
    if game.walkthrough:
        content["walkthrough"] = game.walkthrough
    return json.dumps(content)


def write_game(root: Path, game: Game, *, solvable: bool | None = True) -> Path:
    """Write a game file where its task id says, below `root`."""
    path = root / game.task_id / GAME_FILE
    path.parent.mkdir(parents=True)
    path.write_text(game_file_text(game, solvable=solvable), encoding="utf-8")
    return path


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
