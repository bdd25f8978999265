"""Generates ALFWorld games, without end and always solvable.

A game is a layout from `layouts.py`, a goal that the layout allows, target things where a search
finds them in time, and other things. Split, index and difficulty determine all of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from itertools import accumulate
from typing import Any, Final

from proxmo_envs.alfworld import frequencies, vocabulary
from proxmo_envs.alfworld.games import TASK_TYPES, Game, HouseholdGoal, Item, TaskType
from proxmo_envs.alfworld.layouts import (
    POOLS,
    SETTINGS,
    Difficulty,
    Draws,
    RoomLayout,
    Spots,
    room_layout,
    written_id,
)
from proxmo_envs.alfworld.text import TASK_SENTENCES

DIFFICULTIES: Final = tuple(SETTINGS)
SPLIT_SIZES: Final = {"train": 10_000, "valid_seen": 1_000, "valid_unseen": 1_000}
_POOL: Final = {"train": "known", "valid_seen": "known", "valid_unseen": "new"}

# Chance of one more target than needed, in rooms that do not follow official counts.
_ONE_MORE: Final = 0.25
# Equally likely numbers of copies of a thing in a room of official size.
_COPIES: Final = (1, 1, 2, 2, 3)
# Chances of oddities in official rooms: a thing in the fridge is cool from the start; a bowl, pan
# or the like holds something; a thing lies on two pieces of furniture that share a place.
_COOL_ALREADY: Final = 0.08
_LIES_IN_HOLDER: Final = 0.09
_LIES_ON_TWO: Final = 0.6
_TWO_AS_ONE: Final = {"stoveburner": "stoveburner", "coffeemachine": "countertop"}


def generate(split: str, index: int, difficulty: str = "default") -> Game:
    """Return game `index` of a split; the same arguments always give the same game.

    Args:
        split: `train`, `valid_seen` (new games in the layouts of train) or `valid_unseen` (layouts
            with sets of furniture that never occur in train).
        index: any number from 0; a split consists of the first `SPLIT_SIZES[split]`.
        difficulty: one of `DIFFICULTIES`.

    Raises:
        ValueError: unknown split or difficulty, or a negative index.
    """
    _check(split, index, difficulty)
    settings = SETTINGS[difficulty]
    draws = Draws(split, difficulty, index)
    layout, goal = _plan_game(draws, difficulty, _POOL[split])
    things = _Things(draws, layout)
    _add_targets(things, goal, settings)
    if settings.official:
        _add_official_others(things, goal, settings)
    else:
        _add_few_others(things, goal, draws.between(settings.things))
    sentence = draws.pick(TASK_SENTENCES[goal.task_type])
    target = goal.receptacle_kind or goal.lamp_kind
    return Game(
        task_id=f"generated/{split}/{difficulty}/{index:06d}",
        task=sentence.format(thing=goal.item_kind, target=target),
        goal=goal,
        start_location=draws.pick(layout.starts),
        receptacles=layout.receptacles,
        items=tuple(things.items.values()),
        can_contain=_can_contain(layout.kinds, {item.kind for item in things.items.values()}),
        split=split,
    )


def _check(split: str, index: int, difficulty: str) -> None:
    if split not in SPLIT_SIZES or difficulty not in SETTINGS or index < 0:
        raise ValueError(
            f"no generated game for split {split!r}, difficulty {difficulty!r}, index {index}; "
            f"splits: {', '.join(SPLIT_SIZES)}; difficulties: {', '.join(DIFFICULTIES)}; "
            "index: 0 or more"
        )


def _plan_game(draws: Draws, difficulty: str, pool: str) -> tuple[RoomLayout, HouseholdGoal]:
    """Draw a layout and a goal that is possible in it."""
    while True:
        room, task_type = _room_and_type(draws, official=SETTINGS[difficulty].official)
        layout = room_layout(room, difficulty, pool, draws.below(POOLS[pool]))
        goals = layout.goals[task_type]
        if not goals:
            continue
        thing, targets = draws.pick(goals)
        target = draws.pick(targets)
        if task_type == "look_at_obj_in_light":
            return layout, HouseholdGoal(task_type, thing, lamp_kind=target)
        return layout, HouseholdGoal(task_type, thing, receptacle_kind=target)


_MIX: Final = tuple(frequencies.GAME_MIX)
_MIX_CUMULATIVE: Final = tuple(accumulate(frequencies.GAME_MIX.values()))
_ROOMS_OF: Final = {
    task_type: tuple(room for room, kind in frequencies.GAME_MIX if kind == task_type)
    for task_type in TASK_TYPES
}


def _room_and_type(draws: Draws, *, official: bool) -> tuple[str, TaskType]:
    if official:
        return draws.weighted(_MIX, _MIX_CUMULATIVE)
    task_type = draws.pick(TASK_TYPES)
    return draws.pick(_ROOMS_OF[task_type]), task_type


@cache
def _flags(kind: str) -> frozenset[str]:
    flags = {flag for flag, kinds in vocabulary.PROPERTIES.items() if kind in kinds}
    if kind not in vocabulary.LAMPS | vocabulary.SCENERY:
        flags.add("pickupable")
    return frozenset(flags)


def _can_contain(furniture: Iterable[str], things: set[str]) -> frozenset[tuple[str, str]]:
    return frozenset(
        (kind, thing)
        for kind in furniture
        for thing in vocabulary.CAN_CONTAIN.get(kind, frozenset()) & things
    )


class _Things:
    """The items of a game under construction, by id."""

    def __init__(self, draws: Draws, layout: RoomLayout) -> None:
        self.draws = draws
        self.layout = layout
        self.items: dict[str, Item] = {}

    def put(self, kind: str, spots: Spots) -> None:
        """Add a thing to one of the spots."""
        at = self.draws.weighted(spots.receptacles, spots.cumulative)
        receptacle = self.layout.receptacles[at]
        name = self._new_id(kind, self.layout.positions[at])
        self.items[name] = Item(
            name, kind, receptacle.location, receptacles=(receptacle.id,), flags=_flags(kind)
        )

    def drop(self, kind: str) -> None:
        """Add a thing that lies on no furniture."""
        at = self.draws.below(len(self.layout.receptacles))
        name = self._new_id(kind, self.layout.positions[at])
        location = self.layout.receptacles[at].location
        self.items[name] = Item(name, kind, location, flags=_flags(kind))

    def change(self, item: Item, **fields: Any) -> None:
        """Replace fields of an item."""
        self.items[item.id] = replace(item, **fields)

    def _new_id(self, kind: str, position: tuple[float, float, float]) -> str:
        x, y, z = position
        uniform = self.draws.uniform
        while True:
            near = (x + (uniform() - 0.5) / 2, y + uniform() / 5, z + (uniform() - 0.5) / 2)
            name = written_id(kind, near)
            if name not in self.items:
                return name


def _add_targets(things: _Things, goal: HouseholdGoal, settings: Difficulty) -> None:
    """Add the things that the goal needs, never so that it is reached already."""
    draws, layout = things.draws, things.layout
    # An unclean apple may lie in the target, unless the goal asks for nothing else.
    changes = goal.task_type in vocabulary.APPLIANCE
    spots = layout.hiding_spots(goal.item_kind, None if changes else goal.receptacle_kind)
    number = 2 if goal.task_type == "pick_two_obj_and_place" else 1
    if settings.official:
        number = draws.between((number, 3))
    elif draws.uniform() < _ONE_MORE:
        number += 1
    for _ in range(number):
        things.put(goal.item_kind, spots)
    if goal.lamp_kind is not None:
        things.put(goal.lamp_kind, layout.hiding_spots(goal.lamp_kind, None))


def _other_kinds(layout: RoomLayout, goal: HouseholdGoal) -> list[str]:
    return [kind for kind in layout.spots if kind not in (goal.item_kind, goal.lamp_kind)]


def _add_few_others(things: _Things, goal: HouseholdGoal, size: int) -> None:
    """Fill a room up to `size` with things that the goal does not ask for."""
    occurs = frequencies.OCCURS[things.layout.room]
    # Taking a thing that can be put nowhere would end a game.
    kinds = [
        kind
        for kind in _other_kinds(things.layout, goal)
        if vocabulary.can_be_put_down(kind, things.layout.kinds)
    ]
    cumulative = tuple(accumulate(occurs[kind] for kind in kinds))
    for _ in range(size - len(things.items)):
        kind = things.draws.weighted(kinds, cumulative)
        things.put(kind, things.layout.spots[kind])


def _add_official_others(things: _Things, goal: HouseholdGoal, settings: Difficulty) -> None:
    """Add the other things of official rooms, in their numbers and with their oddities."""
    draws, layout = things.draws, things.layout
    for kind, numbers in frequencies.ON_THE_FLOOR[layout.room].items():
        # Nobody could take a target on the floor.
        if kind not in (goal.item_kind, goal.lamp_kind):
            for _ in range(draws.pick(numbers)):
                things.drop(kind)
    for kind in _other_kinds(layout, goal):
        if draws.uniform() * 100 < frequencies.OCCURS[layout.room][kind]:
            copies = 1
            if kind not in vocabulary.UNIQUE:
                copies = int(draws.pick(_COPIES) * settings.scale + 0.5)
            for _ in range(min(copies, settings.things[1] - len(things.items))):
                things.put(kind, layout.spots[kind])
    _add_few_others(things, goal, settings.things[0])
    _lay_on_two(things, goal)
    _lay_in_holders(things)
    if goal.task_type != "pick_cool_then_place_in_recep":
        _cool_some(things)


def _lay_on_two(things: _Things, goal: HouseholdGoal) -> None:
    """Put some things on two pieces of furniture that share a place, like pans on burners."""
    furniture = {r.id: r for r in things.layout.receptacles}
    for item in list(things.items.values()):
        if not item.receptacles:
            continue
        first = furniture[item.receptacles[0]]
        partner = _TWO_AS_ONE.get(first.kind)
        if partner is None or partner == goal.receptacle_kind:
            continue
        both = [
            r.id
            for r in things.layout.receptacles
            if r.kind == partner and r.location == first.location and r.id != first.id
        ]
        if both and things.draws.uniform() < _LIES_ON_TWO:
            things.change(item, receptacles=(first.id, both[0]))


def _lay_in_holders(things: _Things) -> None:
    """Put some cutlery and pans into a bowl, pot or the like on the same furniture."""
    small = {"butterknife", "fork", "knife", "pan", "pot", "spatula", "spoon"}
    inside = [i for i in things.items.values() if i.kind in small and i.receptacles]
    for holder in list(things.items.values()):
        if "isreceptacleobject" in holder.flags and things.draws.uniform() < _LIES_IN_HOLDER:
            for item in inside:
                if item.receptacles == holder.receptacles and item.id != holder.id:
                    things.change(holder, contents=(item.id,))
                    break


def _cool_some(things: _Things) -> None:
    """Make some things in the fridge cool from the start."""
    fridges = {r.id for r in things.layout.receptacles if r.kind == "fridge"}
    for item in list(things.items.values()):
        could_be = "coolable" in item.flags and not fridges.isdisjoint(item.receptacles)
        if could_be and things.draws.uniform() < _COOL_ALREADY:
            things.change(item, flags=item.flags | {"iscool"})
