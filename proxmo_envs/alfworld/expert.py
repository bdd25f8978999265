"""Two experts for ALFWorld: one searches and knows only what it has read, one knows everything.

`SearchingExpert` is a teacher for agents: it sees what they see, so they can learn its behaviour.
It reads observations and admissible commands, looks in likely places first, and continues when
somebody else chooses some of the actions. `plan` returns the shortest commands that win a game,
given the places of all things.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from proxmo_envs.alfworld import frequencies, text, vocabulary
from proxmo_envs.alfworld.games import HouseholdGoal
from proxmo_envs.alfworld.planner import plan

__all__ = ["SearchingExpert", "kind_of", "plan", "read_goal"]

_SENTENCES: Final = tuple(
    (task_type, re.compile(re.sub(r"\\{\w+\\}", r"(\\w+)", re.escape(sentence))))
    for task_type, sentences in text.TASK_SENTENCES.items()
    for sentence in sentences
)
_TASK_MARK: Final = "Your task is to: "
_ROOM_LIST: Final = re.compile(r"Looking quickly around you, you see (.+)\.\n")
_CONTENTS: Final = re.compile(r"(?:On the (.+?)|The (.+?) is open\. In it), you see (.+)\.$")
_TAKEN: Final = re.compile(r"You pick up the (.+) from the (.+)\.$")
_PLACED: Final = re.compile(r"You (?:move|put) the (.+) (?:to|in/on) the (.+)\.$")
_TREATED: Final = re.compile(r"You (clean|heat|cool) the (.+) using the ")
# The command in a game that cannot be won, such as a user's own game file.
_GIVE_UP: Final = "look"
_OPPOSITE: Final = {"heat": "cool", "cool": "heat"}


def kind_of(name: str) -> str:
    """Return the kind in a name: `mug` for `mug 2`."""
    return name.rpartition(" ")[0]


def read_goal(observation: str) -> HouseholdGoal:
    """Read the goal off the task sentence that ends a first observation.

    Raises:
        ValueError: the sentence is none of the original's twelve.
    """
    sentence = observation.rpartition(_TASK_MARK)[2]
    for task_type, pattern in _SENTENCES:
        match = pattern.fullmatch(sentence.strip())
        if match:
            thing, target = match.groups()
            if task_type == "look_at_obj_in_light":
                return HouseholdGoal(task_type, thing, lamp_kind=target)
            return HouseholdGoal(task_type, thing, receptacle_kind=target)
    raise ValueError(
        f"the expert cannot read the task {sentence!r}; it expects a first observation that ends "
        "in one of ALFWorld's own task sentences, such as 'put a mug in desk.'"
    )


def _listed(names: str) -> list[str]:
    """Return the names in `a mug 2, a mug 1, and a pen 1`; none for `nothing`."""
    if names == "nothing":
        return []
    return [part.removeprefix("and ").removeprefix("a ") for part in names.split(", ")]


def _without(thing: str, things: Sequence[str] | None) -> list[str]:
    return [other for other in things or () if other != thing]


@lru_cache(maxsize=4096)
def _search_order(room: str, thing: str, furniture: tuple[str, ...]) -> tuple[str, ...]:
    """Sort furniture, the most promising for a search for `thing` first."""

    def rank(name: str) -> tuple[float, bool, int, int]:
        kind, _, number = name.rpartition(" ")
        fits = thing in vocabulary.CAN_CONTAIN.get(kind, ())
        return (
            -frequencies.appeal(room, thing, kind),
            not fits,
            frequencies.effort(kind),
            int(number),
        )

    return tuple(sorted(furniture, key=rank))


class SearchingExpert:
    """Plays one game at a time under partial observation; deterministic.

    Call `reset` with the first observation, then `act` before every step. The expert reads from
    the texts what happened, so the caller may execute other actions instead.
    """

    def reset(self, observation: str) -> None:
        """Begin a game with its first observation, which ends in the task sentence."""
        self.goal = read_goal(observation)
        self._verb = vocabulary.TREATMENT.get(self.goal.task_type)
        listed = _ROOM_LIST.search(observation)
        self._learn_room(_listed(listed.group(1)) if listed else [])
        # The things in the furniture that we have looked into.
        self._contents: dict[str, list[str]] = {}
        self._lamps: dict[str, str] = {}
        self._treated: set[tuple[str, str]] = set()

    def _learn_room(self, furniture: Sequence[str]) -> None:
        self._furniture = dict.fromkeys(furniture)
        self._room = vocabulary.room_of(map(kind_of, furniture))

    def act(self, observation: str, admissible: Sequence[str]) -> str:
        """Return the next command for the newest observation and its admissible commands."""
        self._read(observation)
        self._survey(admissible)
        if self._held is None:
            return self._fetch()
        if kind_of(self._held) != self.goal.item_kind:
            return self._put_down()
        if self.goal.task_type == "look_at_obj_in_light":
            return self._use_lamp()
        if self._verb is not None and (self._verb, self._held) not in self._treated:
            return self._treat()
        return self._deliver()

    def _read(self, observation: str) -> None:
        """Update our knowledge from the newest observation."""
        if seen := _CONTENTS.search(observation):
            place = seen.group(1) or seen.group(2)
            if place in self._furniture:
                self._contents[place] = _listed(seen.group(3))
        elif taken := _TAKEN.match(observation):
            thing, place = taken.groups()
            self._contents[place] = _without(thing, self._contents.get(place))
        elif placed := _PLACED.match(observation):
            thing, place = placed.groups()
            self._contents[place] = [*_without(thing, self._contents.get(place)), thing]
        elif treated := _TREATED.match(observation):
            verb, thing = treated.groups()
            self._treated.add((verb, thing))
            self._treated.discard((_OPPOSITE.get(verb, ""), thing))

    def _survey(self, admissible: Sequence[str]) -> None:
        """Read from the commands where the agent is, what it holds, and what it can take."""
        if not self._furniture:
            # A game that starts at furniture does not list the room.
            names = [
                c.partition(" ")[2].removeprefix("to ") for c in admissible if c[:2] in ("go", "ex")
            ]
            self._learn_room(names)
        self._admissible = admissible
        self._here: list[str] = []
        self._held: str | None = None
        self._closed: set[str] = set()
        lamps: list[str] = []
        in_reach: dict[str, list[str]] = {}
        for command in admissible:
            verb, _, rest = command.partition(" ")
            if verb == "go":
                continue
            if verb == "examine":
                if rest in self._furniture:
                    self._here.append(rest)
                else:
                    self._held = rest
            elif verb == "open":
                self._closed.add(rest)
            elif verb == "use":
                lamps.append(rest)
            elif verb == "take":
                thing, _, place = rest.partition(" from ")
                in_reach.setdefault(place, []).append(thing)
        for lamp in lamps:
            self._lamps[lamp] = self._here[0]
        if self._held is None:
            # With empty hands the commands name everything that can be taken here.
            for place in self._here:
                if place not in self._closed:
                    self._contents[place] = in_reach.get(place, [])

    def _named(self, kind: str) -> list[str]:
        """Return the furniture of a kind, lowest number first (the room lists it last)."""
        return [name for name in reversed(self._furniture) if kind_of(name) == kind]

    def _open_at(self, place: str) -> str | None:
        """Return the next command on the way to an open `place`; None when there."""
        if place not in self._here:
            return f"go to {place}"
        return f"open {place}" if place in self._closed else None

    def _fetch(self) -> str:
        """Go and take a thing of the wanted kind, or look for one."""
        kind = self.goal.item_kind
        done = self._contents.get(self._anchor() or "", [])
        sources = [
            (place not in self._here, place, thing)
            for place, things in self._contents.items()
            for thing in things
            if thing not in done and kind_of(thing) == kind
        ]
        if not sources:
            return self._search(kind)
        _, place, thing = min(sources, key=lambda source: source[0])
        return self._open_at(place) or f"take {thing} from {place}"

    def _anchor(self) -> str | None:
        """Return the target that holds the first of two things; the second must join it."""
        if self.goal.task_type != "pick_two_obj_and_place":
            return None
        for place in self._named(self.goal.receptacle_kind or ""):
            if any(
                kind_of(thing) == self.goal.item_kind for thing in self._contents.get(place, ())
            ):
                return place
        return None

    def _search(self, kind: str) -> str:
        """Look into the most likely place for `kind` among those not yet seen."""
        order = _search_order(self._room, kind, tuple(self._furniture))
        unseen = [place for place in order if place not in self._contents]
        if not unseen:
            # Somebody moved things, or we overlooked one: look everywhere again.
            self._contents.clear()
            unseen = list(order)
        best = unseen[0]
        near = next((place for place in unseen if place in self._here), None)
        # Looking into furniture here costs one step, whatever it costs from elsewhere.
        if near is not None and self._rate(kind, near) > self._appeal(kind, best):
            best = near
        return self._open_at(best) or f"examine {best}"

    def _appeal(self, kind: str, place: str) -> float:
        return frequencies.appeal(self._room, kind, kind_of(place))

    def _rate(self, kind: str, place: str) -> float:
        return self._appeal(kind, place) * frequencies.effort(kind_of(place))

    def _treat(self) -> str:
        """Carry the held thing to its appliance and treat it."""
        appliances = self._named(vocabulary.APPLIANCE[self.goal.task_type])
        for place in appliances:
            if place in self._here:
                return f"{self._verb} {self._held} with {place}"
        return f"go to {appliances[0]}" if appliances else _GIVE_UP

    def _deliver(self) -> str:
        """Carry the held thing to the target and put it down."""
        anchor = self._anchor()
        targets = [anchor] if anchor else self._named(self.goal.receptacle_kind or "")
        if not targets:
            return _GIVE_UP
        place = next((p for p in targets if p in self._here), targets[0])
        return self._open_at(place) or self._placing(place) or _GIVE_UP

    def _placing(self, place: str) -> str | None:
        """Return the command that puts the held thing there, in the grammar of the game."""
        forms = (f"{verb} {self._held}{to}{place}" for verb, to in text.PREPOSITIONS.items())
        return next((command for command in forms if command in self._admissible), None)

    def _put_down(self) -> str:
        """Put the held thing down anywhere."""
        for command in filter(None, map(self._placing, self._here)):
            return command
        kind = kind_of(self._held or "")
        order = _search_order(self._room, self.goal.item_kind, tuple(self._furniture))
        takers = [p for p in order if kind in vocabulary.CAN_CONTAIN.get(kind_of(p), ())]
        for place in takers:
            if place in self._here and place in self._closed:
                return f"open {place}"
        for place in sorted(takers, key=lambda p: p in self._contents):
            if place not in self._here:
                return f"go to {place}"
        return _GIVE_UP

    def _use_lamp(self) -> str:
        """Carry the held thing to the lamp, and turn the lamp on."""
        lamp_kind = self.goal.lamp_kind or ""
        for lamp, place in self._lamps.items():
            if kind_of(lamp) == lamp_kind:
                return f"use {lamp}" if f"use {lamp}" in self._admissible else f"go to {place}"
        for place, things in self._contents.items():
            for thing in things:
                if kind_of(thing) == lamp_kind and place not in self._here:
                    return f"go to {place}"
        return self._search(lamp_kind)
