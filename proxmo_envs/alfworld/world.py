"""The ALFWorld text world: the rules of a household room, without planner or grammar interpreter.

A `World` is the state of one episode in a `Room`. The quirks of the original are kept on purpose
(the comments say which): agents are compared on its exact texts.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from typing import Any

from proxmo_envs.alfworld import text
from proxmo_envs.alfworld.room import TREATMENTS, Room

_KNIVES = ("knife", "butterknife")
# Heating undoes cooling and the other way round; clean stays.
_UNDOES = {"cool": "heat", "heat": "cool"}


class World:
    """The state of one episode: where the agent is, what it holds, what lies where and how."""

    __slots__ = (
        "_lists",
        "contents",
        "done_to",
        "held",
        "left",
        "location",
        "opened",
        "room",
        "sliced",
        "toggled",
        "whereabouts",
    )

    def __init__(self, room: Room) -> None:
        """Start an episode in `room`."""
        self.room = room
        self.location = room.start
        self.held: int | None = None
        self.opened = set(room.opened)
        self.contents = [list(items) for items in room.contents]
        # Facts (item, location): an item taken elsewhere than recorded keeps its record.
        self.whereabouts = set(room.whereabouts)
        # Facts (item, receptacle): taken out of it and not put back.
        self.left: set[tuple[int, int]] = set()
        self.done_to = {
            "clean": set(room.having("isclean")),
            "cool": set(room.having("iscool")),
            "heat": set(room.having("ishot")),
        }
        self.sliced = set(room.having("issliced"))
        self.toggled = set(room.having("istoggled"))
        self._lists: dict[int, tuple[int | None, list[str]]] = {}

    def copy(self) -> World:
        """Return an independent copy; the room is shared."""
        twin = World.__new__(World)
        twin.room = self.room
        twin.location = self.location
        twin.held = self.held
        twin.opened = set(self.opened)
        twin.contents = [list(items) for items in self.contents]
        twin.whereabouts = set(self.whereabouts)
        twin.left = set(self.left)
        twin.done_to = {verb: set(items) for verb, items in self.done_to.items()}
        twin.sliced = set(self.sliced)
        twin.toggled = set(self.toggled)
        twin._lists = dict(self._lists)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> World:
        """Copy the state, never the room."""
        return self.copy()

    def welcome(self) -> str:
        """Return the first observation of an episode."""
        if self.room.at[self.location]:
            scene = self._look("") or ""
        else:
            scene = text.room(self.room.receptacles)
        return text.welcome(scene, self.room.game.task)

    def act(self, command: str) -> str | None:
        """Carry out `command` and return what the world says; None when it cannot be done now.

        A command must be word for word what `admissible` lists; white space around it is forgiven.
        """
        verb, _, rest = command.strip().partition(" ")
        action = _ACTIONS.get(verb)
        return None if action is None else action(self, rest)

    @property
    def conditions(self) -> tuple[int, int]:
        """How many conditions of the goal hold, and how many there are."""
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
        # As in ALFRED: some target is placed, some target was treated, one target is both.
        treated = self.done_to[room.goal_verb]
        both = any(i in treated for items in placed for i in items)
        return somewhere + (not targets.isdisjoint(treated)) + both, 3

    @property
    def won(self) -> bool:
        """Whether the goal holds now."""
        met, total = self.conditions
        return met == total

    def admissible(self) -> list[str]:
        """Return a new list of the commands that can be done now, sorted as plain strings."""
        known = self._lists.get(self.location)
        if known is None or known[0] != self.held:
            known = (self.held, self._admissible())
            # One list a place is enough: it is what an agent that walks around meets again.
            self._lists[self.location] = known
        return known[1].copy()

    # What can be done. The verbs are in alphabetical order: sorted segments make a sorted list.

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
            commands += ["help", "inventory", "look", *self._placements("move", "to")]
            commands += sorted(f"open {name}" for name in closed)
        else:
            commands += ["inventory", "look"]
            commands += sorted(f"open {name}" for name in closed)
            commands += self._placements("put", "in/on")
        commands += self._slicings()
        commands += self._takings()
        lamps = (i for i in room.having("toggleable") if self._within_reach(i))
        commands += sorted(f"use {room.items[i]}" for i in lamps)
        return commands

    def _treatments(self, verb: str) -> list[str]:
        kind, flag = TREATMENTS[verb]
        room = self.room
        if self.held is None or self.held not in room.having(flag):
            return []
        item = room.items[self.held]
        appliances = [room.receptacles[r] for r in room.at[self.location] if self._treats(r, kind)]
        return sorted(f"{verb} {item} with {appliance}" for appliance in appliances)

    def _placements(self, verb: str, preposition: str) -> list[str]:
        held, room = self.held, self.room
        if held is None:
            return []
        item = room.items[held]
        return sorted(
            f"{verb} {item} {preposition} {room.receptacles[r]}"
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
        """Say whether `receptacle` is the appliance; in the older grammar a sink cleans, too."""
        own = self.room.receptacle_kinds[receptacle]
        return own == kind or (kind == "sinkbasin" and own == "sink" and self.room.grammar == "put")

    def _within_reach(self, lamp: int) -> bool:
        """Say whether a lamp can be used: in any receptacle here, even a closed one."""
        return any(lamp in self.contents[r] for r in self.room.at[self.location])

    # What is done. Each action gets the words after its verb; None says that it is not admissible.

    def _here(self, name: str) -> int | None:
        """Return the receptacle called `name` when it stands where the agent is."""
        receptacle = self.room.receptacle_index.get(name)
        if receptacle is None or self.room.place[receptacle] != self.location:
            return None
        return receptacle

    def _changed(self) -> None:
        """Forget what could be done here: every change is local to the place of the agent."""
        self._lists.pop(self.location, None)

    def _inside(self, receptacle: int) -> str:
        """Return what is seen in or on a receptacle."""
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
        # Once for each receptacle here that the item was taken from, even if it is in another now.
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
        # Everything at the agent's place counts as reached: one cannot go there again.
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

    def _move(self, rest: str) -> str | None:
        name, _, where = rest.partition(" to ")
        if self.room.grammar != "move" or not self._place(name, where):
            return None
        return f"You move the {name} to the {where}."

    def _put(self, rest: str) -> str | None:
        name, _, where = rest.partition(" in/on ")
        if self.room.grammar != "put" or not self._place(name, where):
            return None
        return f"You put the {name} in/on the {where}."

    def _place(self, name: str, where: str) -> bool:
        receptacle, item = self._here(where), self.room.item_index.get(name)
        if receptacle is None or item is None or item != self.held:
            return False
        if not self._accepts(receptacle, item):
            return False
        self.held = None
        if item not in self.contents[receptacle]:
            insort(self.contents[receptacle], item)
        self.left.discard((item, receptacle))
        self.whereabouts.add((item, self.location))
        self._changed()
        return True

    def _examine(self, rest: str) -> str | None:
        receptacle = self._here(rest)
        if receptacle is not None:
            return self._inside(receptacle)
        room, item = self.room, self.room.item_index.get(rest)
        # The domain means visible items, too, but a slip in it leaves only the held one.
        if item is None or item != self.held:
            return None
        if item in room.having("isreceptacleobject"):
            seen = text.listing([room.listed[i] for i in room.inside.get(item, ())])
            return f"This is a normal {rest}. In it, you see {seen}."
        return text.item_state(
            rest,
            hot=item in self.done_to["heat"],
            cool=item in self.done_to["cool"],
            clean=item in self.done_to["clean"],
            sliced=item in self.sliced,
        )

    def _use(self, rest: str) -> str | None:
        lamp = self.room.item_index.get(rest)
        if lamp is None or lamp not in self.room.having("toggleable"):
            return None
        if not self._within_reach(lamp):
            return None
        self.toggled.add(lamp)
        # It says so every time: a lamp that was ever turned on counts as on.
        return f"You turn on the {rest}."

    def _treat(self, verb: str, rest: str) -> str | None:
        name, _, where = rest.partition(" with ")
        receptacle, item = self._here(where), self.room.item_index.get(name)
        kind, flag = TREATMENTS[verb]
        if receptacle is None or item is None or item != self.held:
            return None
        if item not in self.room.having(flag) or not self._treats(receptacle, kind):
            return None
        self.done_to[verb].add(item)
        if verb in _UNDOES:
            self.done_to[_UNDOES[verb]].discard(item)
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
    "move": World._move,
    "open": World._open,
    "put": World._put,
    "slice": World._slice,
    "take": World._take,
    "use": World._use,
}
