"""The kinds of furniture and things in ALFWorld's rooms, their properties, and what holds what."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import resources
from typing import Final

from proxmo_envs.alfworld.games import TaskType

ROOMS: Final = ("kitchen", "livingroom", "bedroom", "bathroom")


def read_tables(file: str) -> dict[str, str]:
    """Read a text file of this package: `[title]` lines, each followed by its table."""
    text = resources.files("proxmo_envs.alfworld").joinpath(file).read_text(encoding="utf-8")
    parts = re.split(r"^\[(.+)\]$", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def words_by_key(table: str) -> dict[str, tuple[str, ...]]:
    """Parse `key: word word ... key: word ...` (any line breaks) to a tuple of words per key."""
    lists: dict[str, list[str]] = {}
    for word in table.split():
        if word.endswith(":"):
            words = lists.setdefault(word[:-1], [])
        else:
            words.append(word)
    return {key: tuple(words) for key, words in lists.items()}


_TABLES: Final = read_tables("vocabulary.txt")


def table(title: str) -> dict[str, tuple[str, ...]]:
    """Return a table of `vocabulary.txt`: a tuple of words per key."""
    return words_by_key(_TABLES[title])


# Doors: closed at the start. Cabinets, drawers and safes of some official rooms have none.
APPLIANCES_WITH_DOOR: Final = frozenset({"fridge", "microwave"})
OFTEN_WITH_DOOR: Final = frozenset({"cabinet", "drawer", "safe"})

_GROUPS: Final = table("groups")
# PDDL predicates of kinds of things. What is neither lamp nor scenery can be picked up.
PROPERTIES: Final[dict[str, frozenset[str]]] = {
    flag: frozenset(kinds)
    for flag, kinds in _GROUPS.items()
    if flag not in ("scenery", "never_a_goal")
}
LAMPS: Final = PROPERTIES["toggleable"]
SCENERY: Final = frozenset(_GROUPS["scenery"])
# At most one of these in a room.
UNIQUE: Final = LAMPS | {"houseplant", "television"}
# Furniture that no official task asks to put something in.
NEVER_A_GOAL: Final = frozenset(_GROUPS["never_a_goal"])

# The treatment that a task type asks for; the furniture and the property that a treatment needs.
TREATMENT: Final[dict[TaskType, str]] = {
    "pick_clean_then_place_in_recep": "clean",
    "pick_heat_then_place_in_recep": "heat",
    "pick_cool_then_place_in_recep": "cool",
}
TREATMENT_NEEDS: Final = {
    "clean": ("sinkbasin", "cleanable"),
    "heat": ("microwave", "heatable"),
    "cool": ("fridge", "coolable"),
}
APPLIANCE: Final = {task: TREATMENT_NEEDS[verb][0] for task, verb in TREATMENT.items()}

# receptacle kind -> kinds of things it can hold (canContain in the PDDL problems).
CAN_CONTAIN: Final[dict[str, frozenset[str]]] = {
    receptacle: frozenset(kinds) for receptacle, kinds in table("can contain").items()
}
# What can be put somewhere; a teddy bear, once taken, can never be put down.
_PUTTABLE: Final = frozenset().union(*CAN_CONTAIN.values())


def fits(thing: str, task_type: TaskType) -> bool:
    """Return whether a task of this type can be about `thing`."""
    if thing not in _PUTTABLE:
        return False
    verb = TREATMENT.get(task_type)
    return verb is None or thing in PROPERTIES[TREATMENT_NEEDS[verb][1]]


def can_be_put_down(thing: str, furniture: Iterable[str]) -> bool:
    """Return whether some of the furniture can hold a thing, or nobody can carry it."""
    if thing in LAMPS or thing in SCENERY:
        return True
    return any(thing in CAN_CONTAIN.get(kind, ()) for kind in furniture)


def room_of(furniture: Iterable[str]) -> str:
    """Return the kind of room that has these kinds of furniture."""
    kinds = set(furniture)
    for sign, room in (("fridge", "kitchen"), ("toilet", "bathroom"), ("bed", "bedroom")):
        if sign in kinds:
            return room
    return "livingroom"
