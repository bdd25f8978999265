"""Endless ALFWorld games of our own: drawn, not downloaded, and always solvable.

A game is a layout from `layouts.py`, a goal that the layout allows, the target things where a
search finds them in time, and other things around them. All of it follows from (split, index,
difficulty).
"""

from __future__ import annotations

from functools import cache
from itertools import accumulate
from typing import Final

from proxmo_envs.alfworld import vocabulary
from proxmo_envs.alfworld.games import Game, Goal, Item, TaskType
from proxmo_envs.alfworld.layouts import (
    POOLS,
    SETTINGS,
    Difficulty,
    Draws,
    Layout,
    Spots,
    layout,
    written_id,
)

DIFFICULTIES: Final = tuple(SETTINGS)
SPLIT_SIZES: Final = {"train": 10_000, "valid_seen": 1_000, "valid_unseen": 1_000}
_POOL: Final = {"train": "known", "valid_seen": "known", "valid_unseen": "new"}

# Both sentences of the original per task type.
_SENTENCES: Final[dict[TaskType, tuple[str, str]]] = {
    "pick_and_place_simple": ("put a {thing} in {target}.", "put some {thing} on {target}."),
    "look_at_obj_in_light": (
        "look at {thing} under the {target}.",
        "examine the {thing} with the {target}.",
    ),
    "pick_clean_then_place_in_recep": (
        "put a clean {thing} in {target}.",
        "clean some {thing} and put it in {target}.",
    ),
    "pick_heat_then_place_in_recep": (
        "put a hot {thing} in {target}.",
        "heat some {thing} and put it in {target}.",
    ),
    "pick_cool_then_place_in_recep": (
        "put a cool {thing} in {target}.",
        "cool some {thing} and put it in {target}.",
    ),
    "pick_two_obj_and_place": (
        "put two {thing} in {target}.",
        "find two {thing} and put them in {target}.",
    ),
}

_ONE_MORE: Final = 0.25


def generate(split: str, index: int, difficulty: str = "default") -> Game:
    """Return the generated game `index` of a split; the same arguments always give the same game.

    Args:
        split: `train`, `valid_seen` (new games in the layouts of train) or `valid_unseen` (layouts
            whose set of furniture never occurs in train).
        index: any number from 0; `SPLIT_SIZES` says how many make up the split.
        difficulty: one of `DIFFICULTIES`.

    Raises:
        ValueError: unknown split or difficulty, or a negative index.
    """
    if split not in SPLIT_SIZES or difficulty not in SETTINGS or index < 0:
        raise ValueError(
            f"no generated game for split {split!r}, difficulty {difficulty!r}, index {index}; "
            f"splits: {', '.join(SPLIT_SIZES)}; difficulties: {', '.join(DIFFICULTIES)}; "
            "index: 0 or more"
        )
    settings = SETTINGS[difficulty]
    draws = Draws(split, difficulty, index)
    place, goal = _plan_game(draws, difficulty, _POOL[split])
    things = _Things(draws, place)
    _add_targets(things, goal, settings)
    _add_others(things, goal, settings)
    sentence = draws.pick(_SENTENCES[goal.task_type])
    target = goal.receptacle_kind or goal.lamp_kind
    return Game(
        task_id=f"generated/{split}/{difficulty}/{index:06d}",
        task=sentence.format(thing=goal.item_kind, target=target),
        goal=goal,
        start_location=draws.pick(place.starts),
        receptacles=place.receptacles,
        items=tuple(things.items.values()),
        can_contain=place.can_contain,
        split=split,
    )


def _plan_game(draws: Draws, difficulty: str, pool: str) -> tuple[Layout, Goal]:
    """Draw a layout and a goal that is possible there."""
    while True:
        room, task_type = _room_and_type(draws, official=SETTINGS[difficulty].official)
        place = layout(room, difficulty, pool, draws.below(POOLS[pool]))
        goals = place.goals[task_type]
        if not goals:
            continue
        thing, targets = draws.pick(goals)
        target = draws.pick(targets)
        if task_type == "look_at_obj_in_light":
            return place, Goal(task_type, thing, lamp_kind=target)
        return place, Goal(task_type, thing, receptacle_kind=target)


_MIX: Final = tuple(vocabulary.GAME_MIX)
_MIX_CUMULATIVE: Final = tuple(accumulate(vocabulary.GAME_MIX.values()))
_ROOMS_OF: Final = {
    task_type: tuple(room for room, kind in vocabulary.GAME_MIX if kind == task_type)
    for task_type in vocabulary.TASK_TYPES
}


def _room_and_type(draws: Draws, *, official: bool) -> tuple[str, TaskType]:
    if official:
        return draws.weighted(_MIX, _MIX_CUMULATIVE)
    task_type = draws.pick(vocabulary.TASK_TYPES)
    return draws.pick(_ROOMS_OF[task_type]), task_type


@cache
def _flags(kind: str) -> frozenset[str]:
    flags = {flag for flag, kinds in vocabulary.PROPERTIES.items() if kind in kinds}
    if kind not in vocabulary.LAMPS | vocabulary.SCENERY:
        flags.add("pickupable")
    return frozenset(flags)


class _Things:
    """The items of a game in the making, by id."""

    def __init__(self, draws: Draws, place: Layout) -> None:
        self.draws = draws
        self.place = place
        self.items: dict[str, Item] = {}

    def put(self, kind: str, spots: Spots, flags: frozenset[str] | None = None) -> Item:
        """Add a thing of a kind to one of the spots."""
        draws = self.draws
        at = draws.weighted(spots.receptacles, spots.cumulative)
        receptacle = self.place.receptacles[at]
        x, y, z = self.place.positions[at]
        while True:
            shift = draws.uniform(), draws.uniform(), draws.uniform()
            position = (x + (shift[0] - 0.5) / 2, y + shift[1] / 5, z + (shift[2] - 0.5) / 2)
            name = written_id(kind, position)
            if name not in self.items:
                break
        item = Item(
            name,
            kind,
            receptacle.location,
            receptacles=(receptacle.id,),
            flags=_flags(kind) if flags is None else flags,
        )
        self.items[name] = item
        return item


def _add_targets(things: _Things, goal: Goal, settings: Difficulty) -> None:
    """Put down what the goal needs, never where it would be won already."""
    draws, place = things.draws, things.place
    # An unclean apple may well lie in the target; where nothing else is asked for it may not.
    changes = goal.task_type in vocabulary.APPLIANCE
    spots = place.hiding_spots(goal.item_kind, None if changes else goal.receptacle_kind)
    number = 2 if goal.task_type == "pick_two_obj_and_place" else 1
    if settings.official:
        number = draws.between((number, 3))
    elif draws.uniform() < _ONE_MORE:
        number += 1
    for _ in range(number):
        things.put(goal.item_kind, spots)
    if goal.lamp_kind is not None:
        things.put(goal.lamp_kind, place.hiding_spots(goal.lamp_kind, None))


def _add_others(things: _Things, goal: Goal, settings: Difficulty) -> None:
    """Add everything the goal does not ask for."""
    kinds = [k for k in things.place.spots if k not in (goal.item_kind, goal.lamp_kind)]
    occurs = vocabulary.OCCURS[things.place.room]
    draws = things.draws
    if not settings.official:
        # What cannot be put back anywhere would end a game when it is picked up.
        kinds = [k for k in kinds if vocabulary.can_be_put_down(k, things.place.kinds)]
        cumulative = tuple(accumulate(occurs[k] for k in kinds))
        for _ in range(draws.between(settings.things) - len(things.items)):
            kind = draws.weighted(kinds, cumulative)
            things.put(kind, things.place.spots[kind])
        return
    copies = [
        kind
        for kind in kinds
        if draws.uniform() * 100 < occurs[kind]
        for _ in range(1 if kind in vocabulary.UNIQUE else draws.between((1, 3)))
    ]
    for kind in copies:
        things.put(kind, things.place.spots[kind])
