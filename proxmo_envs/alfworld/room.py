"""An ALFWorld game compiled for play: names and indexes of everything in a room.

Items and receptacles become indexes into their sorted ids. The original lists everything in the
order of its ids, so a sorted list of indexes is in the order of the text.
"""

from __future__ import annotations

from collections.abc import Iterable

from proxmo_envs.alfworld.games import Game, Grammar, Item
from proxmo_envs.alfworld.vocabulary import TREATMENT, TREATMENT_NEEDS


def _names(ids: Iterable[str]) -> dict[str, str]:
    """Name every id, such as `mug 2`; of one kind the last id in string order gets number 1."""
    counts: dict[str, int] = {}
    names: dict[str, str] = {}
    for thing in sorted(ids, reverse=True):
        name = thing.partition("_bar_")[0]
        if "basin" in thing:
            name += "basin"
        counts[name] = counts.get(name, 0) + 1
        names[thing] = f"{name} {counts[name]}"
    return names


class Room:
    """A game compiled for play in one grammar; it never changes, so threads may share it."""

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
        self.opened = {k for k, r in enumerate(receptacles) if r.opened and r.openable}

        self.items = [names[i.id] for i in items]
        self.item_index = {name: k for k, name in enumerate(self.items)}
        self.item_kinds = [i.kind for i in items]
        self.listed = [f"a {name}" for name in self.items]
        self.flagged: dict[str, set[int]] = {}
        self.contents: list[list[int]] = [[] for _ in receptacles]
        self.inside: dict[int, list[int]] = {}
        self.whereabouts = {
            (k, place_index[i.location]) for k, i in enumerate(items) if i.location is not None
        }
        self._read_items(items, {r.id: k for k, r in enumerate(receptacles)})
        self._read_goal()
        self._go_to: dict[int, list[str]] = {}

    def _read_items(self, items: list[Item], receptacles: dict[str, int]) -> None:
        """Fill in the flags and the place of each item; `receptacles` maps id to index."""
        index = {item.id: k for k, item in enumerate(items)}
        for k, item in enumerate(items):
            for flag in item.flags:
                self.flagged.setdefault(flag, set()).add(k)
            for receptacle in item.receptacles:
                self.contents[receptacles[receptacle]].append(k)
            if item.contents:
                self.inside[k] = sorted(index[i] for i in item.contents)

    def _read_goal(self) -> None:
        """Find the items, receptacles and lamps of the kinds that the goal names."""
        goal = self.game.goal
        self.goal_verb = TREATMENT.get(goal.task_type)
        targets = {k for k, kind in enumerate(self.item_kinds) if kind == goal.item_kind}
        if self.goal_verb is not None:
            targets &= self.having(TREATMENT_NEEDS[self.goal_verb][1])
        self.goal_items = targets
        self.goal_receptacles = [
            k for k, kind in enumerate(self.receptacle_kinds) if kind == goal.receptacle_kind
        ]
        self.goal_lamps = [
            k for k in self.having("toggleable") if self.item_kinds[k] == goal.lamp_kind
        ]

    def having(self, flag: str) -> set[int]:
        """Return the items that have `flag` at the start."""
        return self.flagged.get(flag, set())

    def go_to(self, place: int) -> list[str]:
        """Return the sorted `go to` commands at `place`, one per piece of furniture elsewhere."""
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
        """Return the sentence for an arrival; the older grammar numbers the location."""
        if self.grammar == "move":
            return f"You arrive at {self.receptacles[receptacle]}."
        return f"You arrive at loc {len(self.at) - self.place[receptacle]}."
