"""The ALFWorld text world: the rules of a household room, without a planner and without a grammar interpreter.

A `Room` is one `Game` compiled for play (names, numbers, sorted indexes); it never changes and is shared. A `World` is
the state of one episode in a room. Items and receptacles are indexes into the sorted ids, because the original lists
everything in the order of its ids: a sorted list of indexes is already in the order in which it is told.

The quirks of the original are kept on purpose (the comments say which): agents are compared on its exact texts.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from typing import Any

from proxmo_envs.alfworld import text
from proxmo_envs.alfworld.games import Game, Grammar

_KNIVES = ("knife", "butterknife")
# What an appliance does to a held item: verb -> (kind of receptacle, flag the item needs).
_TREATMENTS = {
    "clean": ("sinkbasin", "cleanable"),
    "cool": ("fridge", "coolable"),
    "heat": ("microwave", "heatable"),
}
_GOAL_VERBS = {
    "pick_clean_then_place_in_recep": "clean",
    "pick_cool_then_place_in_recep": "cool",
    "pick_heat_then_place_in_recep": "heat",
}


def _names(ids: Iterable[str]) -> dict[str, str]:
    """Name every id; of one name the last id in string order gets number 1, the first the highest."""
    counts: dict[str, int] = {}
    names: dict[str, str] = {}
    for thing in sorted(ids, reverse=True):
        name = thing.partition("_bar_")[0]
        if "basin" in thing and "basin" not in name:
            name += "basin"
        counts[name] = counts.get(name, 0) + 1
        names[thing] = f"{name} {counts[name]}"
    return names


class Room:
    """One game compiled for play in one grammar; never changes, safe to share between worlds and threads."""

    def __init__(self, game: Game, grammar: Grammar | None = None) -> None:
        """Compile `game`; `grammar` overrides the game's own."""
        self.game = game
        self.grammar: Grammar = grammar or game.grammar
        receptacles = sorted(game.receptacles, key=lambda r: r.id)
        items = sorted(game.items, key=lambda i: i.id)
        names = _names([r.id for r in receptacles] + [i.id for i in items])
        places = {game.start_location, *(r.location for r in receptacles)}
        places.update(i.location for i in items if i.location is not None)
        place_index = {place: k for k, place in enumerate(sorted(places))}

        self.start = place_index[game.start_location]
        self.receptacles = [names[r.id] for r in receptacles]
        self.receptacle_index = {name: k for k, name in enumerate(self.receptacles)}
        self.receptacle_kinds = [r.kind for r in receptacles]
        self.place = [place_index[r.location] for r in receptacles]
        self.at: list[list[int]] = [[] for _ in place_index]
        for k, place in enumerate(self.place):
            self.at[place].append(k)
        self.openable = [r.openable for r in receptacles]
        self.opened = {k for k, r in enumerate(receptacles) if r.opened}

        self.items = [names[i.id] for i in items]
        self.item_index = {name: k for k, name in enumerate(self.items)}
        self.item_kinds = [i.kind for i in items]
        self.listed = [f"a {name}" for name in self.items]
        self.flagged: dict[str, set[int]] = {}
        self.contents: list[list[int]] = [[] for _ in receptacles]
        self.whereabouts: set[tuple[int, int]] = set()
        self._read_items(place_index)
        self._go_to: dict[int, list[str]] = {}
        self._read_goal()

    def _read_items(self, place_index: dict[str, int]) -> None:
        """Fill in what is true of each item at the start."""
        receptacle_ids = {r.id: k for k, r in enumerate(sorted(self.game.receptacles, key=lambda r: r.id))}
        items = sorted(self.game.items, key=lambda i: i.id)
        item_ids = {item.id: k for k, item in enumerate(items)}
        self.inside: dict[int, list[int]] = {}
        for k, item in enumerate(items):
            for flag in item.flags:
                self.flagged.setdefault(flag, set()).add(k)
            for receptacle in item.receptacles:
                self.contents[receptacle_ids[receptacle]].append(k)
            if item.location is not None:
                self.whereabouts.add((k, place_index[item.location]))
            if item.contents:
                self.inside[k] = sorted(item_ids[i] for i in item.contents)

    def _read_goal(self) -> None:
        """Turn the kinds the goal names into the items, receptacles and lamps that count."""
        goal = self.game.goal
        self.goal_verb = _GOAL_VERBS.get(goal.task_type)
        targets = {k for k, kind in enumerate(self.item_kinds) if kind == goal.item_kind}
        if self.goal_verb is not None:
            targets &= self.having(_TREATMENTS[self.goal_verb][1])
        self.goal_items = targets
        self.goal_receptacles = [
            k for k, kind in enumerate(self.receptacle_kinds) if kind == goal.receptacle_kind
        ]
        self.goal_lamps = [
            k for k in self.having("toggleable") if self.item_kinds[k] == goal.lamp_kind
        ]

    def having(self, flag: str) -> set[int]:
        """Return the items for which `flag` is true at the start."""
        return self.flagged.get(flag, set())

    def go_to(self, place: int) -> list[str]:
        """Return the sorted `go to` commands at `place`: all furniture that stands elsewhere."""
        commands = self._go_to.get(place)
        if commands is None:
            commands = sorted(
                f"go to {name}"
                for name, where in zip(self.receptacles, self.place, strict=True)
                if where != place
            )
            self._go_to[place] = commands
        return commands

    def arrival(self, receptacle: int) -> str:
        """Return what is said on arriving; the older grammar gives away the number of the location."""
        if self.grammar == "move":
            return f"You arrive at {self.receptacles[receptacle]}."
        return f"You arrive at loc {len(self.at) - self.place[receptacle]}."


class World:
    """The state of one episode: where the agent is, what it holds, what lies where, what was done to it."""

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
        # Facts (item, location): an item taken elsewhere than where it is recorded keeps the record.
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

        A command must be word for word what `admissible` lists; only white space around it is forgiven.
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

    def translate(self, command: str) -> str | None:
        """Return what a command of the other grammar is called in this one; None for any other command."""
        verb, _, rest = command.strip().partition(" ")
        ours, theirs = (" to ", " in/on ") if self.room.grammar == "move" else (" in/on ", " to ")
        if verb != ("put" if self.room.grammar == "move" else "move") or theirs not in rest:
            return None
        return f"{'move' if verb == 'put' else 'put'} {rest.replace(theirs, ours, 1)}"

    def admissible(self) -> list[str]:
        """Return a new list of the commands that can be done now, sorted as plain strings."""
        known = self._lists.get(self.location)
        if known is None or known[0] != self.held:
            known = (self.held, self._admissible())
            # One list a place is enough: it is what an agent that walks around meets again.
            self._lists[self.location] = known
        return known[1].copy()

    # What can be done. The verbs are in alphabetical order, so that sorted verbs make a sorted list.

    def _admissible(self) -> list[str]:
        room, held = self.room, self.held
        here = [(r, room.receptacles[r]) for r in room.at[self.location]]
        shut = [name for r, name in here if room.openable[r] and r not in self.opened]
        open_ = [name for r, name in here if room.openable[r] and r in self.opened]
        examined = [f"examine {name}" for _, name in here]
        if held is not None:
            examined.append(f"examine {room.items[held]}")
        commands = self._treatments("clean")
        commands += sorted(f"close {name}" for name in open_)
        commands += self._treatments("cool")
        commands += sorted(examined)
        commands += room.go_to(self.location)
        commands += self._treatments("heat")
        commands += ["help", "inventory", "look"] if room.grammar == "move" else ["inventory", "look"]
        if room.grammar == "move":
            commands += self._placements("move", "to")
        commands += sorted(f"open {name}" for name in shut)
        if room.grammar == "put":
            commands += self._placements("put", "in/on")
        if held is not None and room.item_kinds[held] in _KNIVES:
            sliceable = (i for i in room.having("sliceable") if (i, self.location) in self.whereabouts)
            commands += sorted(f"slice {room.items[i]} with {room.items[held]}" for i in sliceable)
        if held is None:
            commands += self._takings()
        lamps = (i for i in room.having("toggleable") if self._within_reach(i))
        commands += sorted(f"use {room.items[i]}" for i in lamps)
        return commands

    def _treatments(self, verb: str) -> list[str]:
        kind, flag = _TREATMENTS[verb]
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

    def _takings(self) -> list[str]:
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
        """Say whether `receptacle` is the appliance for it; in the older grammar a sink cleans, too."""
        own = self.room.receptacle_kinds[receptacle]
        return own == kind or (
            kind == "sinkbasin" and own == "sink" and self.room.grammar == "put"
        )

    def _within_reach(self, lamp: int) -> bool:
        """Say whether a lamp can be used: in any receptacle here, even a closed one."""
        return any(lamp in self.contents[r] for r in self.room.at[self.location])

    # What is done. Each action gets the words after its verb and returns None where it is not admissible.

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
        # Once for each receptacle here that the item was taken out of, even if it lies in another one now.
        beside = sorted(
            (i, r) for i, r in self.left if r in here and (i, self.location) in self.whereabouts
        )
        return text.facing(
            [room.receptacles[r] for r in here], [room.listed[i] for i, _ in beside]
        )

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
        if receptacle is None or receptacle not in self.opened or not self.room.openable[receptacle]:
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
        if self.room.grammar != "move":
            return None
        name, _, where = rest.partition(" to ")
        return f"You move the {name} to the {where}." if self._place(name, where) else None

    def _put(self, rest: str) -> str | None:
        if self.room.grammar != "put":
            return None
        name, _, where = rest.partition(" in/on ")
        return f"You put the {name} in/on the {where}." if self._place(name, where) else None

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
        if lamp is None or lamp not in self.room.having("toggleable") or not self._within_reach(lamp):
            return None
        self.toggled.add(lamp)
        return f"You turn on the {rest}."

    def _treat(self, verb: str, rest: str) -> bool:
        name, _, where = rest.partition(" with ")
        receptacle, item = self._here(where), self.room.item_index.get(name)
        kind, flag = _TREATMENTS[verb]
        if receptacle is None or item is None or item != self.held:
            return False
        if item not in self.room.having(flag) or not self._treats(receptacle, kind):
            return False
        self.done_to[verb].add(item)
        return True

    def _clean(self, rest: str) -> str | None:
        return _used("clean", rest) if self._treat("clean", rest) else None

    def _cool(self, rest: str) -> str | None:
        if not self._treat("cool", rest):
            return None
        self.done_to["heat"].discard(self.held)  # type: ignore[arg-type]
        return _used("cool", rest)

    def _heat(self, rest: str) -> str | None:
        if not self._treat("heat", rest):
            return None
        self.done_to["cool"].discard(self.held)  # type: ignore[arg-type]
        return _used("heat", rest)

    def _slice(self, rest: str) -> str | None:
        name, _, tool = rest.partition(" with ")
        item, knife = self.room.item_index.get(name), self.room.item_index.get(tool)
        if knife is None or knife != self.held or self.room.item_kinds[knife] not in _KNIVES:
            return None
        if item not in self.room.having("sliceable") or (item, self.location) not in self.whereabouts:
            return None
        self.sliced.add(item)  # type: ignore[arg-type]
        return f"You sliced the {name} with the {tool}."


def _used(verb: str, rest: str) -> str:
    name, _, appliance = rest.partition(" with ")
    return f"You {verb} the {name} using the {appliance}."


_ACTIONS: dict[str, Callable[[World, str], str | None]] = {
    "clean": World._clean,
    "close": World._close,
    "cool": World._cool,
    "examine": World._examine,
    "go": World._go,
    "heat": World._heat,
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
