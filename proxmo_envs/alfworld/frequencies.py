"""How often things occur in ALFWorld's rooms and where they lie, counted in the official games.

The generator draws rooms from these numbers, and the searching expert looks in likely places first:
a generated game rewards the same common sense as an official one.
"""

from __future__ import annotations

from typing import Final, cast

from proxmo_envs.alfworld.games import TaskType
from proxmo_envs.alfworld.vocabulary import (
    APPLIANCES_WITH_DOOR,
    OFTEN_WITH_DOOR,
    ROOMS,
    read_tables,
    words_by_key,
)

_TABLES: Final = read_tables("frequencies.txt")
# Official training games by room and task type: the mix of the default difficulty.
GAME_MIX: Final[dict[tuple[str, TaskType], int]] = {
    (room, cast(TaskType, task_type)): int(games)
    for room, words in words_by_key(_TABLES["games"]).items()
    for task_type, games in zip(words[::2], words[1::2], strict=True)
}
# Per kind of furniture the chance that a piece shares the place of an earlier one (the agent goes
# to both at once), and the kinds of that one.
SHARES_PLACE, _MORE = (
    {
        kind: (float(words[0]), frozenset(words[1:]))
        for kind, words in words_by_key(_TABLES[title]).items()
    }
    for title in ("shares place", "shares place bathroom")
)
SHARES_IN_BATHROOMS: Final = SHARES_PLACE | _MORE
Counts = dict[str, dict[str, tuple[int, ...]]]


def _counts(title: str) -> Counts:
    return {
        room: {
            kind: tuple(map(int, counts))
            for kind, counts in words_by_key(_TABLES[f"{title} {room}"]).items()
        }
        for room in ROOMS
    }


# Per room ten equally likely counts of each kind of furniture.
FURNITURE: Final = _counts("furniture")
# The same for things that belong to the room or lie on its floor. Nobody can take them, but they
# count in the numbering.
ON_THE_FLOOR: Final = _counts("floor")


def _things() -> tuple[dict[str, dict[str, int]], dict[str, dict[str, dict[str, int]]]]:
    """Read how often a kind of thing occurs and where it lies, per room."""
    occurs: dict[str, dict[str, int]] = {}
    lies: dict[str, dict[str, dict[str, int]]] = {}
    for room in ROOMS:
        head, *lines = _TABLES[f"things {room}"].strip().splitlines()
        columns = head.split()[2:]
        occurs[room], lies[room] = {}, {}
        for line in lines:
            kind, percent, *rates = line.split()
            occurs[room][kind] = int(percent)
            lies[room][kind] = {c: int(n) for c, n in zip(columns, rates, strict=True) if n != "0"}
    return occurs, lies


# OCCURS[room][thing]: percent of rooms; LIES[room][thing][furniture]: things per 100 of these.
OCCURS, LIES = _things()


def effort(furniture: str) -> int:
    """Return the number of steps to look into a piece of furniture: go there, perhaps open it."""
    return 2 if furniture in APPLIANCES_WITH_DOOR or furniture in OFTEN_WITH_DOOR else 1


def appeal(room: str, thing: str, furniture: str) -> float:
    """Return the expected number of finds per 100 steps of looking for `thing` there."""
    return LIES[room].get(thing, {}).get(furniture, 0) / effort(furniture)
