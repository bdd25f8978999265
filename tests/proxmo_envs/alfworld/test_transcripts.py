"""Every recorded episode of the original engine, replayed word for word."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path

import pytest

from proxmo_envs.alfworld.games import GAME_FILE, read_game_file
from proxmo_envs.alfworld.room import Room
from proxmo_envs.alfworld.text import NOTHING_HAPPENS
from proxmo_envs.alfworld.world import World

CURRENT = ("planner", "handcoded", "random", "randverb", "mixed", "chores", "tour", "quirks")
LEGACY = ("planner", "randverb", "tour")
RECORDINGS = [
    *(f"transcripts/{policy}.jsonl.gz" for policy in CURRENT),
    *(f"legacy/transcripts/{policy}.jsonl.gz" for policy in LEGACY),
]


@cache
def room(games: Path, game_id: str) -> Room:
    game, _ = read_game_file(games / game_id / GAME_FILE, task_id=game_id, split="any")
    return Room(game)


@pytest.mark.parametrize("recording", RECORDINGS)
def test_recorded_episodes_are_reproduced_exactly(recording: str, shared: Path) -> None:
    path = shared / "alfworld" / recording
    games = path.parent.parent / "games"
    episodes = 0
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            _replay(json.loads(line), games)
            episodes += 1
    assert episodes > 0


def _replay(episode: dict, games: Path) -> None:
    world = World(room(games, episode["game"]))
    start = episode["reset"]
    assert world.welcome() == start["observation"]
    assert world.room.game.task == start["task"]
    assert world.admissible() == start["admissible"]
    assert world.won == start["won"]
    for number, step in enumerate(episode["steps"]):
        said = world.act(step["command"])
        where = (episode["game"], episode["policy"], number, step["command"])
        assert (NOTHING_HAPPENS if said is None else said) == step["observation"], where
        assert (said is not None) == (step["observation"] != NOTHING_HAPPENS), where
        assert world.admissible() == step["admissible"], where
        assert (world.won, int(world.won)) == (step["won"], step["score"]), where
