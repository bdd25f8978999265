"""One ALFWorld game as data: the room, what lies where, and the goal.

A `Game` is what the engine (`world.py`) plays. It comes from an official game file, or from the generator
(`generator.py`); nothing downstream knows which. Everything is immutable, so one `Game` may be shared by any number of
environments and threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Grammar = Literal["move", "put"]
TaskType = Literal[
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
]


@dataclass(frozen=True, slots=True)
class Receptacle:
    """A piece of furniture or an appliance; `id` is the lower-cased PDDL id, `kind` the lower-cased type (`cabinet`)."""

    id: str
    kind: str
    location: str
    openable: bool = False
    opened: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """A thing that is not furniture: what can be taken, lamps, and scenery that only counts in the numbering.

    `flags` holds the lower-cased PDDL predicates that are true of it at the start: pickupable, cleanable, heatable,
    coolable, toggleable, sliceable, isreceptacleobject, ishot, iscool, isclean, issliced, istoggled.
    `receptacles` are the ids of the receptacles it lies in (usually one, possibly none or two); `contents` the ids of
    the items that lie in it.
    """

    id: str
    kind: str
    location: str | None = None
    receptacles: tuple[str, ...] = ()
    contents: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Goal:
    """What wins: kinds, not instances (`receptacle_kind` is None for look_at_obj_in_light, `lamp_kind` for all others)."""

    task_type: TaskType
    item_kind: str
    receptacle_kind: str | None = None
    lamp_kind: str | None = None


@dataclass(frozen=True, slots=True)
class Game:
    """A whole game: `task` is the sentence after "Your task is to: ", with its full stop."""

    task_id: str
    task: str
    goal: Goal
    start_location: str
    receptacles: tuple[Receptacle, ...]
    items: tuple[Item, ...]
    can_contain: frozenset[tuple[str, str]]
    grammar: Grammar = "move"
    split: str = "train"
    walkthrough: tuple[str, ...] = field(default=(), compare=False)
