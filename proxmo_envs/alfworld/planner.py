"""The shortest way to win an ALFWorld game, given the places of all things."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from proxmo_envs.alfworld import vocabulary
from proxmo_envs.alfworld.games import Game, Grammar
from proxmo_envs.alfworld.world import Room


def plan(game: Game, grammar: Grammar | None = None) -> list[str]:
    """Return the shortest commands that win `game` from its start, given the places of all things.

    Args:
        game: the game.
        grammar: overrides the game's own.

    Raises:
        ValueError: the game cannot be won.
    """
    room = Room(game, grammar)
    plans = list(_Planner(room).plans())
    if not plans:
        raise ValueError(
            f"{game.task_id}: no plan reaches {game.task!r}: the thing, the appliance or the "
            "target is missing"
        )
    return min(plans, key=len)


class _Planner:
    """Enumerates ways to win: each choice of thing, appliance and target."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.goal = room.game.goal
        self.sources = [
            (item, place)
            for place, items in enumerate(room.contents)
            for item in items
            if item in room.goal_items and item in room.having("pickupable")
        ]

    def plans(self) -> Iterator[list[str]]:
        """Yield plans; the shortest is among them."""
        if self.goal.task_type == "look_at_obj_in_light":
            yield from self._light_plans()
        elif self.goal.task_type == "pick_two_obj_and_place":
            yield from self._two_plans()
        else:
            yield from self._one_plans()

    def _light_plans(self) -> Iterator[list[str]]:
        for item, place in self.sources:
            for lamp in self.room.goal_lamps:
                for furniture, items in enumerate(self.room.contents):
                    if lamp in items:
                        walk = _Walk(self.room)
                        walk.take(item, place)
                        walk.go(furniture)
                        yield [*walk.commands, f"use {self.room.items[lamp]}"]

    def _one_plans(self) -> Iterator[list[str]]:
        appliance = vocabulary.APPLIANCE.get(self.goal.task_type)
        helpers: list[int | None] = [None]
        if appliance is not None:
            kinds = self.room.receptacle_kinds
            helpers = [k for k, kind in enumerate(kinds) if kind == appliance]
        for item, place in self.sources:
            for helper in helpers:
                for target in self._targets(item):
                    walk = _Walk(self.room)
                    walk.take(item, place)
                    if helper is not None:
                        walk.treat(item, helper)
                    # A thing that lies in two places at once stays in the other when taken.
                    if target == place or item not in self.room.contents[target]:
                        walk.put(item, target)
                    yield walk.commands

    def _two_plans(self) -> Iterator[list[str]]:
        for first, second in permutations(self.sources, 2):
            if first[0] == second[0]:
                continue
            for target in self._targets(first[0]):
                walk = _Walk(self.room)
                for item, place in (first, second):
                    if item not in self.room.contents[target]:
                        walk.take(item, place)
                        walk.put(item, target)
                yield walk.commands

    def _targets(self, item: int) -> list[int]:
        thing = self.room.item_kinds[item]
        return [
            target
            for target in self.room.goal_receptacles
            if (self.room.receptacle_kinds[target], thing) in self.room.game.can_contain
        ]


class _Walk:
    """A plan under construction: the commands so far, where they lead, and what they open."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.commands: list[str] = []
        self._location = room.start
        self._opened = set(room.opened)

    def go(self, furniture: int) -> None:
        if self._location != self.room.place[furniture]:
            self.commands.append(f"go to {self.room.receptacles[furniture]}")
            self._location = self.room.place[furniture]

    def _open(self, furniture: int) -> None:
        self.go(furniture)
        if self.room.openable[furniture] and furniture not in self._opened:
            self.commands.append(f"open {self.room.receptacles[furniture]}")
            self._opened.add(furniture)

    def take(self, item: int, furniture: int) -> None:
        self._open(furniture)
        self.commands.append(
            f"take {self.room.items[item]} from {self.room.receptacles[furniture]}"
        )

    def treat(self, item: int, appliance: int) -> None:
        self.go(appliance)
        verb, thing = self.room.goal_verb, self.room.items[item]
        self.commands.append(f"{verb} {thing} with {self.room.receptacles[appliance]}")

    def put(self, item: int, furniture: int) -> None:
        self._open(furniture)
        thing, place = self.room.items[item], self.room.receptacles[furniture]
        new = self.room.grammar == "move"
        self.commands.append(f"move {thing} to {place}" if new else f"put {thing} in/on {place}")
