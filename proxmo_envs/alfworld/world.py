"""The rules of the ALFWorld household, without planner or grammar interpreter.

A `World` is the state of one episode in a `Room`. We keep the quirks of the original, which
comments point out, because agents are compared on its exact texts.
"""

from __future__ import annotations

import copy
from bisect import insort
from collections.abc import Callable
from typing import Any

from proxmo_envs.alfworld import text
from proxmo_envs.alfworld.games import Grammar
from proxmo_envs.alfworld.room import Room
from proxmo_envs.alfworld.vocabulary import TREATMENT_NEEDS

_KNIVES = ("knife", "butterknife")
# Heating undoes cooling and the other way round; clean stays.
_UNDOES = {"cool": "heat", "heat": "cool"}


class World:
    """The state of one episode: the place of the agent, and the place and state of each item."""

    def __init__(self, room: Room) -> None:
        """Start an episode in `room`."""
        self.room = room
        self.location = room.start
        self.held: int | None = None
        self.opened = set(room.opened)
        self.contents = [list(items) for items in room.contents]
        # Facts (item, location). Taking an item at another location leaves its old fact.
        self.whereabouts = set(room.whereabouts)
        # Facts (item, receptacle): the item was taken out of the receptacle and not put back.
        self.left: set[tuple[int, int]] = set()
        self.treated = {
            "clean": set(room.having("isclean")),
            "cool": set(room.having("iscool")),
            "heat": set(room.having("ishot")),
        }
        self.sliced = set(room.having("issliced"))
        self.toggled = set(room.having("istoggled"))
        self._lists: dict[int, tuple[int | None, list[str]]] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> World:
        """Copy the state; the room never changes and is shared."""
        twin = copy.copy(self)
        for name in ("opened", "whereabouts", "left", "sliced", "toggled", "_lists"):
            setattr(twin, name, getattr(self, name).copy())
        twin.contents = [items.copy() for items in self.contents]
        twin.treated = {verb: items.copy() for verb, items in self.treated.items()}
        return twin

    def welcome(self) -> str:
        """Return the first observation of an episode."""
        if self.room.at[self.location]:
            scene = self._look("") or ""
        else:
            scene = text.room(self.room.receptacles)
        return text.welcome(scene, self.room.game.task)

    def act(self, command: str) -> str | None:
        """Execute `command` and return the answer; None when it is not admissible.

        A command must equal one that `admissible` lists, but for white space around it.
        """
        verb, _, rest = command.strip().partition(" ")
        action = _ACTIONS.get(verb)
        return None if action is None else action(self, rest)

    @property
    def conditions(self) -> tuple[int, int]:
        """The number of conditions of the goal that hold, and their total."""
        room = self.room
        if room.game.goal.task_type == "look_at_obj_in_light":
            lit = any(lamp in self.toggled and self._within_reach(lamp) for lamp in room.goal_lamps)
            return (self.held in room.goal_items) + lit, 2
        targets = room.goal_items
        placed = [[i for i in self.contents[r] if i in targets] for r in room.goal_receptacles]
        if room.game.goal.task_type == "pick_two_obj_and_place":
            return min(2, max(map(len, placed), default=0)), 2
        somewhere = any(placed)
        if room.goal_verb is None:
            return int(somewhere), 1
        # As in ALFRED: some target is placed, some target is treated, some target is both.
        treated = self.treated[room.goal_verb]
        both = any(i in treated for items in placed for i in items)
        return somewhere + (not targets.isdisjoint(treated)) + both, 3

    @property
    def won(self) -> bool:
        """Whether the goal holds now."""
        met, total = self.conditions
        return met == total

    def admissible(self) -> list[str]:
        """Return a new sorted list of the commands that are possible now."""
        known = self._lists.get(self.location)
        if known is None or known[0] != self.held:
            known = (self.held, self._admissible())
            # One list per place is enough for an agent that walks around.
            self._lists[self.location] = known
        return known[1].copy()

    # The admissible commands. The verbs are in alphabetical order, so sorted segments make a
    # sorted list.

    def _admissible(self) -> list[str]:
        room, held = self.room, self.held
        here = [(r, room.receptacles[r]) for r in room.at[self.location]]
        closed = [name for r, name in here if room.openable[r] and r not in self.opened]
        opened = [name for r, name in here if r in self.opened]
        near = [name for _, name in here] + ([] if held is None else [room.items[held]])
        commands = self._treatments("clean")
        commands += sorted(f"close {name}" for name in opened)
        commands += self._treatments("cool")
        commands += sorted(f"examine {name}" for name in near)
        commands += room.go_to(self.location)
        commands += self._treatments("heat")
        if room.grammar == "move":
            commands += ["help", "inventory", "look", *self._placements()]
            commands += sorted(f"open {name}" for name in closed)
        else:
            commands += ["inventory", "look"]
            commands += sorted(f"open {name}" for name in closed)
            commands += self._placements()
        commands += self._slicings()
        commands += self._takings()
        lamps = (i for i in room.having("toggleable") if self._within_reach(i))
        commands += sorted(f"use {room.items[i]}" for i in lamps)
        return commands

    def _treatments(self, verb: str) -> list[str]:
        kind, flag = TREATMENT_NEEDS[verb]
        room = self.room
        if self.held is None or self.held not in room.having(flag):
            return []
        item = room.items[self.held]
        appliances = [room.receptacles[r] for r in room.at[self.location] if self._treats(r, kind)]
        return sorted(f"{verb} {item} with {appliance}" for appliance in appliances)

    def _placements(self) -> list[str]:
        held, room = self.held, self.room
        if held is None:
            return []
        start = f"{room.grammar} {room.items[held]}{text.PREPOSITIONS[room.grammar]}"
        return sorted(
            f"{start}{room.receptacles[r]}"
            for r in room.at[self.location]
            if self._accepts(r, held)
        )

    def _slicings(self) -> list[str]:
        held, room = self.held, self.room
        if held is None or room.item_kinds[held] not in _KNIVES:
            return []
        return sorted(
            f"slice {room.items[i]} with {room.items[held]}"
            for i in room.having("sliceable")
            if (i, self.location) in self.whereabouts
        )

    def _takings(self) -> list[str]:
        if self.held is not None:
            return []
        room, pickupable = self.room, self.room.having("pickupable")
        return sorted(
            f"take {room.items[i]} from {room.receptacles[r]}"
            for r in room.at[self.location]
            if self._is_accessible(r)
            for i in self.contents[r]
            if i in pickupable
        )

    def _is_accessible(self, receptacle: int) -> bool:
        return not self.room.openable[receptacle] or receptacle in self.opened

    def _accepts(self, receptacle: int, item: int) -> bool:
        kinds = (self.room.receptacle_kinds[receptacle], self.room.item_kinds[item])
        return self._is_accessible(receptacle) and kinds in self.room.game.can_contain

    def _treats(self, receptacle: int, kind: str) -> bool:
        """Return whether `receptacle` is the appliance; in the older grammar a sink cleans, too."""
        own = self.room.receptacle_kinds[receptacle]
        return own == kind or (kind == "sinkbasin" and own == "sink" and self.room.grammar == "put")

    def _within_reach(self, lamp: int) -> bool:
        """Return whether a lamp is in a receptacle here, even a closed one."""
        return any(lamp in self.contents[r] for r in self.room.at[self.location])

    # The actions. Each gets the words after its verb and returns None when it is not admissible.

    def _here(self, name: str) -> int | None:
        """Return the receptacle called `name` if it stands at the place of the agent."""
        receptacle = self.room.receptacle_index.get(name)
        if receptacle is None or self.room.place[receptacle] != self.location:
            return None
        return receptacle

    def _changed(self) -> None:
        """Drop the commands listed here: a change affects only the place of the agent."""
        self._lists.pop(self.location, None)

    def _inside(self, receptacle: int) -> str:
        """Return the sentence about the items in or on a receptacle."""
        room, name = self.room, self.room.receptacles[receptacle]
        if not self._is_accessible(receptacle):
            return f"The {name} is closed."
        seen = text.listing([room.listed[i] for i in self.contents[receptacle]])
        if room.openable[receptacle]:
            return f"The {name} is open. In it, you see {seen}."
        return f"On the {name}, you see {seen}."

    def _look(self, rest: str) -> str | None:
        if rest:
            return None
        room, here = self.room, self.room.at[self.location]
        if not here:
            return text.MIDDLE_OF_ROOM
        # Once per receptacle here that the item was taken from, even if it is in another one now.
        beside = sorted(
            (i, r) for i, r in self.left if r in here and (i, self.location) in self.whereabouts
        )
        return text.facing([room.receptacles[r] for r in here], [room.listed[i] for i, _ in beside])

    def _inventory(self, rest: str) -> str | None:
        if rest:
            return None
        if self.held is None:
            return text.EMPTY_HANDED
        return f"You are carrying: {self.room.listed[self.held]}."

    def _help(self, rest: str) -> str | None:
        return text.HELP if not rest and self.room.grammar == "move" else None

    def _go(self, rest: str) -> str | None:
        to, _, name = rest.partition(" ")
        receptacle = self.room.receptacle_index.get(name)
        # The agent is at everything here already and cannot go there again.
        if to != "to" or receptacle is None or self.room.place[receptacle] == self.location:
            return None
        self.location = self.room.place[receptacle]
        return f"{self.room.arrival(receptacle)} {self._inside(receptacle)}"

    def _open(self, rest: str) -> str | None:
        receptacle = self._here(rest)
        if receptacle is None or self._is_accessible(receptacle):
            return None
        self.opened.add(receptacle)
        self._changed()
        return f"You open the {rest}. {self._inside(receptacle)}"

    def _close(self, rest: str) -> str | None:
        receptacle = self._here(rest)
        if receptacle is None or receptacle not in self.opened:
            return None
        self.opened.discard(receptacle)
        self._changed()
        return f"You close the {rest}."

    def _take(self, rest: str) -> str | None:
        name, _, where = rest.partition(" from ")
        receptacle, item = self._here(where), self.room.item_index.get(name)
        if (
            self.held is not None
            or receptacle is None
            or item is None
            or item not in self.contents[receptacle]
            or item not in self.room.having("pickupable")
            or not self._is_accessible(receptacle)
        ):
            return None
        self.held = item
        self.contents[receptacle].remove(item)
        self.left.add((item, receptacle))
        self.whereabouts.discard((item, self.location))
        self._changed()
        return f"You pick up the {name} from the {where}."

    def _put(self, verb: Grammar, rest: str) -> str | None:
        preposition = text.PREPOSITIONS[verb]
        name, _, where = rest.partition(preposition)
        receptacle, item = self._here(where), self.room.item_index.get(name)
        if verb != self.room.grammar or receptacle is None or item is None or item != self.held:
            return None
        if not self._accepts(receptacle, item):
            return None
        self.held = None
        if item not in self.contents[receptacle]:
            insort(self.contents[receptacle], item)
        self.left.discard((item, receptacle))
        self.whereabouts.add((item, self.location))
        self._changed()
        return f"You {verb} the {name}{preposition}the {where}."

    def _examine(self, rest: str) -> str | None:
        receptacle = self._here(rest)
        if receptacle is not None:
            return self._inside(receptacle)
        room, item = self.room, self.room.item_index.get(rest)
        # The original's domain means visible items, too, but a mistake in it leaves the held one.
        if item is None or item != self.held:
            return None
        if item in room.having("isreceptacleobject"):
            seen = text.listing([room.listed[i] for i in room.inside.get(item, ())])
            return f"This is a normal {rest}. In it, you see {seen}."
        return text.item_state(
            rest,
            hot=item in self.treated["heat"],
            cool=item in self.treated["cool"],
            clean=item in self.treated["clean"],
            sliced=item in self.sliced,
        )

    def _use(self, rest: str) -> str | None:
        lamp = self.room.item_index.get(rest)
        if lamp is None or lamp not in self.room.having("toggleable"):
            return None
        if not self._within_reach(lamp):
            return None
        self.toggled.add(lamp)
        # A lamp stays on, and each further use gets the same answer.
        return f"You turn on the {rest}."

    def _treat(self, verb: str, rest: str) -> str | None:
        name, _, where = rest.partition(" with ")
        receptacle, item = self._here(where), self.room.item_index.get(name)
        kind, flag = TREATMENT_NEEDS[verb]
        if receptacle is None or item is None or item != self.held:
            return None
        if item not in self.room.having(flag) or not self._treats(receptacle, kind):
            return None
        self.treated[verb].add(item)
        if verb in _UNDOES:
            self.treated[_UNDOES[verb]].discard(item)
        return f"You {verb} the {name} using the {where}."

    def _slice(self, rest: str) -> str | None:
        name, _, tool = rest.partition(" with ")
        item, knife = self.room.item_index.get(name), self.room.item_index.get(tool)
        if knife is None or knife != self.held or self.room.item_kinds[knife] not in _KNIVES:
            return None
        if item is None or item not in self.room.having("sliceable"):
            return None
        if (item, self.location) not in self.whereabouts:
            return None
        self.sliced.add(item)
        return f"You sliced the {name} with the {tool}."


_ACTIONS: dict[str, Callable[[World, str], str | None]] = {
    "clean": lambda world, rest: world._treat("clean", rest),
    "close": World._close,
    "cool": lambda world, rest: world._treat("cool", rest),
    "examine": World._examine,
    "go": World._go,
    "heat": lambda world, rest: world._treat("heat", rest),
    "help": World._help,
    "inventory": World._inventory,
    "look": World._look,
    "move": lambda world, rest: world._put("move", rest),
    "open": World._open,
    "put": lambda world, rest: world._put("put", rest),
    "slice": World._slice,
    "take": World._take,
    "use": World._use,
}
