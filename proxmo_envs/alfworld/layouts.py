"""Layouts of generated rooms: the furniture and its places.

Many games share a layout, as the official games share 120 scenes. The pools `known` (train,
valid_seen) and `new` (valid_unseen) cannot overlap: a hash of the furniture decides to which pool a
layout belongs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import accumulate
from typing import Final, TypeVar
from zlib import crc32

import numpy as np

from proxmo_envs.alfworld import frequencies, vocabulary
from proxmo_envs.alfworld.games import TASK_TYPES, Receptacle, TaskType

T = TypeVar("T")

# Layouts per kind of room and difficulty.
POOLS: Final = {"known": 60, "new": 20}
# One set of furniture in four belongs to the pool `new`.
_NEW_SHARE: Final = 4

# Furniture without which a room has no tasks; | separates alternatives.
_ESSENTIAL: Final = vocabulary.table("essential furniture")
# Furniture and things of rooms with few kinds.
_FEW_FURNITURE: Final = vocabulary.table("few furniture")
_FEW_THINGS: Final = vocabulary.table("few things")


@dataclass(frozen=True, slots=True)
class Difficulty:
    """How large and how messy generated rooms are; ranges are inclusive."""

    furniture: tuple[int, int]
    things: tuple[int, int]
    # Most pieces of one kind; None draws official counts.
    most_alike: int | None
    # Share of cabinets, drawers and safes without a door.
    doorless: float
    # Whether two pieces may share a place.
    shares_places: bool
    # Official mix of tasks and counts of things, with the oddities of official rooms.
    official: bool
    # Steps that a search in likely places first may need to see a target.
    search_steps: int
    # Whether there are only a few kinds of furniture and things.
    few_kinds: bool = False
    # Pieces and things of a kind, relative to official rooms.
    scale: float = 1.0
    # Part of the hashes of the games; raise it when the difficulty gives other games than before.
    version: int = 1


SETTINGS: Final[dict[str, Difficulty]] = {
    "tiny": Difficulty((5, 7), (4, 7), 2, 0.0, False, False, 12, few_kinds=True),
    "small": Difficulty((11, 16), (12, 20), 4, 0.1, True, False, 18),
    "default": Difficulty((6, 54), (17, 73), None, 0.17, True, True, 26, version=2),
    "large": Difficulty((9, 81), (25, 110), None, 0.17, True, True, 26, scale=1.5),
}


class Draws:
    """Cheap random draws from blocks of uniform numbers, which a numpy Generator makes."""

    __slots__ = ("_numbers", "_rng")

    def __init__(self, *key: str | int) -> None:
        """Seed from `key`; equal keys give equal draws on every machine."""
        entropy = [crc32(part.encode()) if isinstance(part, str) else part for part in key]
        self._rng = np.random.default_rng(np.random.SeedSequence(entropy))
        self._numbers: list[float] = []

    def uniform(self) -> float:
        """Return a number in [0, 1)."""
        if not self._numbers:
            self._numbers = self._rng.random(128).tolist()
        return self._numbers.pop()

    def below(self, n: int) -> int:
        """Return an integer in [0, n)."""
        return int(self.uniform() * n)

    def between(self, bounds: tuple[int, int]) -> int:
        """Return an integer between the two bounds, both included."""
        return bounds[0] + self.below(bounds[1] - bounds[0] + 1)

    def pick(self, choices: Sequence[T]) -> T:
        """Return one of `choices`."""
        return choices[int(self.uniform() * len(choices))]

    def weighted(self, choices: Sequence[T], cumulative: Sequence[float]) -> T:
        """Return one of `choices`, given the running sums of their weights."""
        return choices[bisect_right(cumulative, self.uniform() * cumulative[-1])]


@cache
def _written(cm: int) -> str:
    """Write a coordinate as in ids: `_plus_01_dot_25`."""
    sign = "" if cm == 0 else "_plus_" if cm > 0 else "_minus_"
    return f"{sign}{abs(cm) // 100:02d}_dot_{abs(cm) % 100:02d}"


def written_id(kind: str, position: Iterable[float]) -> str:
    """Write the id of a thing at a position in metres."""
    name = kind.removesuffix("basin")
    end = "" if name == kind else f"_bar_{kind}"
    coordinates = "_bar_".join(_written(round(metres * 100)) for metres in position)
    return f"{name}_bar_{coordinates}{end}"


@dataclass(frozen=True)
class Spots:
    """Places for a kind of thing: indexes of receptacles, and running sums of their weights."""

    receptacles: tuple[int, ...]
    cumulative: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class RoomLayout:
    """A furnished room.

    `room` is its kind, such as "kitchen"; `positions` are the coordinates of the furniture in
    metres, `starts` the places without furniture.
    """

    room: str
    receptacles: tuple[Receptacle, ...]
    positions: tuple[tuple[float, float, float], ...]
    starts: tuple[str, ...]
    search_steps: int
    few_kinds: bool

    @cached_property
    def kinds(self) -> frozenset[str]:
        """Return the kinds of furniture."""
        return frozenset(r.kind for r in self.receptacles)

    @cached_property
    def spots(self) -> dict[str, Spots]:
        """Return the spots of each kind of thing that has one."""
        rates = frequencies.LIES[self.room]
        found = {
            thing: self._spots(
                thing, (n for n, r in enumerate(self.receptacles) if r.kind in rates[thing])
            )
            for thing in (_FEW_THINGS[self.room] if self.few_kinds else rates)
        }
        return {thing: spots for thing, spots in found.items() if spots.receptacles}

    def _spots(self, thing: str, numbers: Iterable[int]) -> Spots:
        """Return the receptacles of these numbers as spots for a thing."""
        rates, at = frequencies.LIES[self.room][thing], tuple(numbers)
        return Spots(at, tuple(accumulate(rates[self.receptacles[n].kind] for n in at)))

    @cached_property
    def reachable(self) -> dict[str, tuple[int, ...]]:
        """Return per thing the receptacles that a search reaches in time, likely places first.

        Targets lie only there: a game must not be lost because its spoon is in the last of 27
        cabinets.
        """
        kinds = [r.kind for r in self.receptacles]
        found = {}
        for thing, spots in self.spots.items():
            rank = {n: -frequencies.appeal(self.room, thing, kinds[n]) for n in spots.receptacles}
            order = sorted(rank, key=lambda n, rank=rank: (rank[n], -n))  # type: ignore[misc]
            steps = accumulate(frequencies.effort(kinds[n]) for n in order)
            near = (n for n, step in zip(order, steps, strict=True) if step <= self.search_steps)
            found[thing] = tuple(near)
        return found

    def hiding_spots(self, thing: str, avoid: str | None) -> Spots:
        """Return the spots for a target: within reach, not in furniture of kind `avoid`."""
        near = self.reachable[thing]
        return self._spots(thing, (n for n in near if self.receptacles[n].kind != avoid))

    @cached_property
    def goals(self) -> dict[TaskType, tuple[tuple[str, tuple[str, ...]], ...]]:
        """Return per task type its possible things, each with its possible kinds of target."""
        return {task_type: tuple(self._goals(task_type)) for task_type in TASK_TYPES}

    def _goals(self, task_type: TaskType) -> Iterable[tuple[str, tuple[str, ...]]]:
        appliance = vocabulary.APPLIANCE.get(task_type)
        if appliance is not None and appliance not in self.kinds:
            return
        if task_type == "look_at_obj_in_light":
            possible = sorted(lamp for lamp in vocabulary.LAMPS if self.reachable.get(lamp))
        else:
            possible = sorted(self.kinds - vocabulary.NEVER_A_GOAL - {appliance})
        for thing in self.spots:
            if not vocabulary.fits(thing, task_type):
                continue
            near = {self.receptacles[n].kind for n in self.reachable[thing]}
            targets = tuple(
                target
                for target in possible
                if target in vocabulary.LAMPS
                or (
                    thing in vocabulary.CAN_CONTAIN.get(target, ())
                    # The thing needs another place to start from.
                    and (appliance is not None or near != {target})
                )
            )
            if near and targets:
                yield thing, targets


@lru_cache(maxsize=1024)
def room_layout(room: str, difficulty: str, pool: str, number: int) -> RoomLayout:
    """Return layout `number` of a pool; the same arguments always give the same room."""
    settings = SETTINGS[difficulty]
    draws = Draws("layout", room, difficulty, pool, number)
    while True:
        kinds = _furniture(draws, room, settings)
        is_new = crc32(" ".join([room, *kinds]).encode()) % _NEW_SHARE == 0
        if is_new == (pool == "new"):
            return _furnish(draws, room, kinds, settings)


def _furniture(draws: Draws, room: str, settings: Difficulty) -> list[str]:
    """Draw the kind of each piece of furniture; sorted."""
    deciles = frequencies.FURNITURE[room]
    counts: Counter[str] = Counter()
    if settings.most_alike is None:
        for kind, numbers in deciles.items():
            scale = settings.scale if max(numbers) > 1 else 1
            counts[kind] = int(draws.pick(numbers) * scale + 0.5)
    allowed = set(_FEW_FURNITURE[room] if settings.few_kinds else deciles)
    for kinds in _ESSENTIAL[room]:
        choices = [kind for kind in kinds.split("|") if kind in allowed]
        if not any(counts[kind] for kind in choices):
            counts[draws.pick(choices)] += 1
    low, high = settings.furniture
    size = low if settings.most_alike is None else draws.between((low, high))
    # Draws each kind as often as official rooms have it.
    often = [kind for kind, numbers in deciles.items() for n in numbers if n and kind in allowed]
    while counts.total() < size:
        kind = draws.pick(often)
        most = max(deciles[kind])
        if counts[kind] < (most if most == 1 else settings.most_alike or most):
            counts[kind] += 1
    return sorted(counts.elements())[:high]


def _furnish(draws: Draws, room: str, kinds: list[str], settings: Difficulty) -> RoomLayout:
    """Give every piece a place, coordinates and perhaps a door."""
    crowded = settings.official and room == "bathroom"
    shares = frequencies.SHARES_IN_BATHROOMS if crowded else frequencies.SHARES_PLACE
    free = _floor(draws, len(kinds) + 6)
    places: list[tuple[str, tuple[int, int]]] = []
    pieces: list[tuple[Receptacle, tuple[float, float, float]]] = []
    for kind in kinds:
        chance, partners = shares.get(kind, (0.0, frozenset[str]()))
        beside = [n for n, (r, _) in enumerate(pieces) if r.kind in partners]
        if settings.shares_places and beside and draws.uniform() < chance:
            place = places[draws.pick(beside)]
        else:
            x, z = free.pop()
            place = (_location(x, z, draws.below(4), draws.pick((30, 45, 60, 60))), (x, z))
        places.append(place)
        location, (x, z) = place
        position = (
            x / 4 + draws.uniform() - 0.5,
            draws.uniform() * 2,
            z / 4 + draws.uniform() - 0.5,
        )
        door = kind in vocabulary.APPLIANCES_WITH_DOOR or (
            kind in vocabulary.OFTEN_WITH_DOOR and draws.uniform() >= settings.doorless
        )
        piece = Receptacle(written_id(kind, position), kind, location, openable=door)
        pieces.append((piece, position))
    if len({piece.id for piece, _ in pieces}) < len(pieces):
        return _furnish(draws, room, kinds, settings)
    pieces.sort(key=lambda pair: pair[0].id)
    return RoomLayout(
        room=room,
        receptacles=tuple(piece for piece, _ in pieces),
        positions=tuple(position for _, position in pieces),
        starts=tuple(_location(x, z, draws.below(4), 30) for x, z in free),
        search_steps=settings.search_steps,
        few_kinds=settings.few_kinds,
    )


def _floor(draws: Draws, n: int) -> list[tuple[int, int]]:
    """Draw `n` different places on a floor in quarters of a metre."""
    places: dict[tuple[int, int], None] = {}
    while len(places) < n:
        places[draws.below(25) - 12, draws.below(25) - 12] = None
    return list(places)


def _location(x: int, z: int, rotation: int, horizon: int) -> str:
    return "loc" + "".join(
        f"_bar_{'_minus_' if n < 0 else ''}{abs(n)}" for n in (x, z, rotation, horizon)
    )
