"""The shortest way to win an ALFWorld game, given the places of all things.

We enumerate the ways to win: each choice of thing, appliance and target. A way is a list of errands
(verb, item, furniture); the commands follow from it, with the walks and doors in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from proxmo_envs.alfworld import text, vocabulary
from proxmo_envs.alfworld.games import Game, Grammar
from proxmo_envs.alfworld.world import Room

_Way = list[tuple[str, int, int]]


def plan(game: Game, grammar: Grammar | None = None) -> list[str]:
    """Return the shortest commands that win `game` from its start, given the places of all things.

    Args:
        game: the game.
        grammar: overrides the game's own.

    Raises:
        ValueError: the game cannot be won.
    """
    room = Room(game, grammar)
    plans = [_commands(room, way) for way in _ways(room)]
    if not plans:
        raise ValueError(
            f"{game.task_id}: no plan reaches {game.task!r}: the thing, the appliance or the "
            "target is missing"
        )
    return min(plans, key=len)


def _ways(room: Room) -> Iterator[_Way]:
    """Yield ways to win; the shortest is among them."""
    task_type = room.game.goal.task_type
    sources = [
        (item, place)
        for place, items in enumerate(room.contents)
        for item in items
        if item in room.goal_items and item in room.having("pickupable")
    ]
    if task_type == "look_at_obj_in_light":
        for item, place in sources:
            for lamp in room.goal_lamps:
                for furniture, items in enumerate(room.contents):
                    if lamp in items:
                        yield [("take", item, place), ("use", lamp, furniture)]
    elif task_type == "pick_two_obj_and_place":
        for first, second in permutations(sources, 2):
            if first[0] != second[0]:
                for target in _targets(room, first[0]):
                    yield [
                        errand
                        for item, place in (first, second)
                        if item not in room.contents[target]
                        for errand in (("take", item, place), ("put", item, target))
                    ]
    else:
        appliance = vocabulary.APPLIANCE.get(task_type)
        kinds = [None] if appliance is None else room.receptacle_kinds
        for item, place in sources:
            for helper in (k for k, kind in enumerate(kinds) if kind == appliance):
                treatment = [(room.goal_verb, item, helper)] if room.goal_verb else []
                for target in _targets(room, item):
                    # A thing that lies in two places at once stays in the other when taken.
                    stays = target != place and item in room.contents[target]
                    put = [] if stays else [("put", item, target)]
                    yield [("take", item, place), *treatment, *put]


def _targets(room: Room, item: int) -> list[int]:
    thing = room.item_kinds[item]
    return [
        target
        for target in room.goal_receptacles
        if (room.receptacle_kinds[target], thing) in room.game.can_contain
    ]


def _commands(room: Room, way: _Way) -> list[str]:
    """Return the commands that run the errands of a way."""
    commands: list[str] = []
    location, opened = room.start, set(room.opened)
    for verb, item, furniture in way:
        thing, place = room.items[item], room.receptacles[furniture]
        if location != room.place[furniture]:
            commands.append(f"go to {place}")
            location = room.place[furniture]
        inside = verb in ("take", "put")
        if inside and room.openable[furniture] and furniture not in opened:
            commands.append(f"open {place}")
            opened.add(furniture)
        if verb == "take":
            commands.append(f"take {thing} from {place}")
        elif verb == "use":
            commands.append(f"use {thing}")
        elif verb == "put":
            commands.append(f"{room.grammar} {thing}{text.PREPOSITIONS[room.grammar]}{place}")
        else:
            commands.append(f"{verb} {thing} with {place}")
    return commands
