"""What `proxmo bench env` measures, and that it compares answers with the original's."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import gymnasium
import pytest

from proxmo.errors import UsageError
from proxmo_cli.bench.alfworld import beside
from proxmo_cli.bench.env import measure, sizes
from proxmo_envs.alfworld.generator import DIFFICULTIES, generate
from proxmo_envs.errors import ProxmoEnvError
from tests.proxmo_envs.alfworld.small import write_game

TINY = {"data": "generated", "difficulty": "tiny"}
# Stands in for the two packages of the original: our engine, as `original.py` sees theirs.
FAKE = """
from pathlib import Path
from proxmo_envs.alfworld.games import read_game_file
from proxmo_envs.alfworld.room import Room
from proxmo_envs.alfworld.world import World

class EnvInfos:
    def __init__(self, **wanted): pass

class Env:
    def __init__(self, path):
        self.world = World(Room(read_game_file(Path(path), task_id="", split="")[0]))
    def state(self, said):
        won = self.world.won
        return {"feedback": said, "won": won, "admissible_commands": self.world.admissible()}
    def reset(self):
        return self.state(self.world.welcome()REPLACED)
    def step(self, command):
        said = self.world.act(command) or "Nothing happens."
        return self.state(said), int(self.world.won), self.world.won
    def close(self): pass

def start(path, infos, wrappers):
    print("the original is talkative")
    return Env(path)
"""


@pytest.fixture
def original(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts the stand-in on the path of new interpreters; returns its file."""
    package = tmp_path / "fake" / "alfworld" / "agents" / "environment"
    package.mkdir(parents=True)
    (package / "alfred_tw_env.py").write_text("AlfredDemangler = object\n")
    file = tmp_path / "fake" / "textworld.py"
    file.write_text(FAKE.replace("REPLACED", ""))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'fake'}:{repository}")
    return file


def two_games(root: Path) -> Path:
    """Write an official data directory."""
    for number in range(2):
        task_id = f"train/pick_and_place_simple-{number}/trial"
        write_game(root, replace(generate("train", number), task_id=task_id))
    return root


def test_speed_and_memory_are_measured_over_the_games_asked_for() -> None:
    speed = measure("ALFWorld-v0", "tiny", TINY, steps=300, games=50)
    assert speed.size == "tiny" and speed.games == 50
    assert speed.steps_per_second > speed.resets_per_second > 100
    assert 7 < speed.actions < 20
    assert 1_000 < speed.live_bytes < 200_000
    assert speed.growth_bytes is None or abs(speed.growth_bytes) < 10_000_000


def test_rooms_of_every_difficulty_are_packed_smallest_first(tmp_path: Path) -> None:
    found = sizes("ALFWorld-v0", tmp_path)
    assert tuple(found) == DIFFICULTIES
    for kwargs in found.values():
        info = gymnasium.make("ALFWorld-v0", **kwargs).reset(seed=0)[1]
        assert info["task_id"].startswith("train/")


def test_the_original_plays_the_same_tasks_and_its_answers_are_compared(
    original: Path, tmp_path: Path
) -> None:
    both = beside(two_games(tmp_path / "data"), sys.executable, 2)
    assert both.tasks == 2 and both.steps == 80
    assert min(both.ours_steps, both.original_steps, both.ours_resets, both.original_resets) > 0
    assert both.original_bytes > 10_000_000


def test_an_original_that_answers_otherwise_is_an_error(original: Path, tmp_path: Path) -> None:
    original.write_text(FAKE.replace("REPLACED", " + '?'"))
    with pytest.raises(ProxmoEnvError, match="compare.py shows where"):
        beside(two_games(tmp_path / "data"), sys.executable, 1)


@pytest.mark.parametrize(
    ("python", "complaint"),
    [
        (sys.executable, "cannot play the original: .*alfworld|textworld.*pip install alfworld"),
        ("/no/such/python", "cannot be started"),
    ],
)
def test_an_interpreter_without_the_original_is_one_clear_error(
    tmp_path: Path, python: str, complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        beside(two_games(tmp_path), python, 1)


def test_the_bundled_catalogues_are_measured_by_name(tmp_path: Path) -> None:
    found = sizes("WebShop-v0", tmp_path)
    assert {"tiny", "small", "default"} <= set(found)
    speed = measure("WebShop-v0", "small", found["small"], steps=200)
    assert speed.steps_per_second > 0 and speed.actions > 2
