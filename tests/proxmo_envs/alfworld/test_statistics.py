"""Generated rooms of the default difficulty are like official ones: the table in docs/alfworld.md.

`python -m tests.proxmo_envs.alfworld.test_statistics [DATA]` prints the rows of the table.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from proxmo_envs.alfworld import vocabulary
from proxmo_envs.alfworld.games import Game
from proxmo_envs.alfworld.generator import generate
from proxmo_envs.alfworld.planner import plan
from proxmo_envs.alfworld.sources import open_source
from tests.proxmo_envs.alfworld.reference import pack_rows, read_rows

MEASURES = ("furniture", "doors", "things", "places shared", "cool things", "holders", "plan")
# Farthest a generated mean may lie from the official one: a share of it, and in its own unit.
BOUNDS = {
    "furniture": (0.15, 0.0),
    "doors": (0.15, 0.6),
    "things": (0.05, 0.0),
    "places shared": (0.0, 0.12),
    "cool things": (0.0, 0.08),
    "holders": (0.0, 0.1),
    "plan": (0.08, 0.0),
}
# Games per room whose means are taken: their rounding in the docs must not hide a change.
SAMPLE = 150
Row = dict[str, float]


def measure(games: Iterable[Game]) -> dict[str, Row]:
    """Return per room the mean of each measure."""
    rows: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for game in games:
        places = {r.location for r in game.receptacles}
        rows[vocabulary.room_of(r.kind for r in game.receptacles)].append(
            (
                len(game.receptacles),
                sum(r.openable for r in game.receptacles),
                len(game.items),
                len(places) < len(game.receptacles),
                any("iscool" in item.flags for item in game.items),
                any(item.contents for item in game.items),
                len(plan(game)),
            )
        )
    return {
        room: dict(zip(MEASURES, np.mean(row, axis=0).tolist(), strict=True))
        for room, row in sorted(rows.items())
    }


def generated(per_room: int) -> Iterator[Game]:
    """Yield the first games of each kind of room."""
    left = dict.fromkeys(vocabulary.ROOMS, per_room)
    number = 0
    while any(left.values()):
        game = generate("train", number)
        room = vocabulary.room_of(r.kind for r in game.receptacles)
        if left[room]:
            left[room] -= 1
            yield game
        number += 1


def official(data: str) -> Iterator[Game]:
    """Yield the official training games."""
    source = open_source(data)
    return (source.game(task_id) for task_id in source.ids("train"))


def table(repository: Path) -> dict[str, dict[str, Row]]:
    """Read the table of the docs: {"official" or "generated": {room: row}}."""
    rows: dict[str, dict[str, Row]] = {"official": {}, "generated": {}}
    for line in (repository / "docs" / "alfworld.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == len(MEASURES) + 2 and cells[1] in rows:
            values = dict(zip(MEASURES, map(float, cells[2:]), strict=True))
            rows[cells[1]][cells[0]] = values
    assert all(set(found) == set(vocabulary.ROOMS) for found in rows.values())
    return rows


def assert_as_printed(measured: dict[str, Row], printed: dict[str, Row]) -> None:
    for room, row in printed.items():
        for name, value in row.items():
            assert measured[room][name] == pytest.approx(value, abs=0.0051), (room, name)


def test_the_generated_numbers_in_the_docs_are_those_of_the_generator(repository: Path) -> None:
    assert_as_printed(measure(generated(SAMPLE)), table(repository)["generated"])


def test_generated_rooms_are_like_official_ones_within_the_stated_bounds(repository: Path) -> None:
    rows = table(repository)
    for room, row in rows["official"].items():
        for name, value in row.items():
            share, unit = BOUNDS[name]
            difference = abs(rows["generated"][room][name] - value)
            assert difference <= share * value + unit, (room, name)


@pytest.mark.slow
def test_the_official_numbers_in_the_docs_are_those_of_the_data(
    repository: Path, shared: Path, tmp_path: Path
) -> None:
    data = pack_rows(read_rows(shared, ["train"]), tmp_path / "games.packed")
    assert_as_printed(measure(official(str(data))), table(repository)["official"])


if __name__ == "__main__":
    measured = {"official": measure(official(sys.argv[1]))} if len(sys.argv) > 1 else {}
    for room, row in measure(generated(SAMPLE)).items():
        for name, rows in ({**measured, "generated": {room: row}}).items():
            numbers = " | ".join(f"{value:.2f}" for value in rows[room].values())
            print(f"| {room} | {name} | {numbers} |")
