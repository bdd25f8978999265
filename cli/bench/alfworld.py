"""The ALFWorld engine: generated rooms of every size, and the original beside ours."""

from __future__ import annotations

import json
import resource
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from proxmo_envs.alfworld import original
from proxmo_envs.alfworld.games import GAME_FILE, Game, read_game_file
from proxmo_envs.alfworld.generator import DIFFICULTIES, generate
from proxmo_envs.alfworld.official import OfficialDirectory
from proxmo_envs.alfworld.packed import write_packed
from proxmo_envs.alfworld.room import Room
from proxmo_envs.alfworld.text import NOTHING_HAPPENS
from proxmo_envs.alfworld.world import World
from proxmo_envs.errors import ProxmoEnvError

from .processes import run_script

ENV: Final = "ALFWorld-v0"
# Games in the packed file of each size.
_GAMES = 200
_STEPS = 40


@dataclass(frozen=True, slots=True)
class Beside:
    """Our engine and the original on the same tasks and commands, with equal answers.

    Rates are per second of CPU time; `original_bytes` is the peak memory of the original's process.
    """

    tasks: int
    steps: int
    ours_steps: float
    original_steps: float
    ours_resets: float
    original_resets: float
    original_bytes: int


def sizes(folder: Path) -> dict[str, dict[str, Any]]:
    """Pack games of every difficulty into a file each."""
    made: dict[str, dict[str, Any]] = {}
    for difficulty in DIFFICULTIES:
        path = folder / f"{difficulty}.packed"
        games = (generate("train", number, difficulty) for number in range(_GAMES))
        named = [(replace(game, task_id=game.task_id.partition("/")[2]), "") for game in games]
        write_packed(path, {"train": named})
        made[difficulty] = {"data": str(path)}
    return made


def beside(data: Path, python: str, tasks: int) -> Beside:
    """Play official training games with both engines and compare their answers.

    Args:
        data: an official data directory.
        python: interpreter that has `alfworld`.
        tasks: number of games.

    Raises:
        UsageError: that interpreter cannot play.
        ProxmoEnvError: the engines answer differently.
    """
    jobs, ours, seconds, reset_seconds = [], [], 0.0, 0.0
    rng = np.random.default_rng(0)
    source = OfficialDirectory(data)
    ids = source.ids("train")
    for task_id in ids[:: max(1, len(ids) // tasks)][:tasks]:
        file = (source.path / task_id / GAME_FILE).resolve()
        start = time.process_time()
        game, _ = read_game_file(file, task_id=task_id, split="train")
        reset_seconds += time.process_time() - start
        commands, said, spent = _wander(game, rng)
        jobs.append({"game_file": str(file), "commands": commands})
        ours.append(said)
        reset_seconds += spent[0]
        seconds += sum(spent[1:])
    lines = run_script(
        python,
        original.__file__,
        "\n".join(map(json.dumps, jobs)),
        task="play the original",
        needs="`pip install alfworld pyyaml` (docs/alfworld.md)",
    )
    episodes = [json.loads(line) for line in lines]
    if [episode["moments"] for episode in episodes] != ours:
        raise ProxmoEnvError(
            "the original answers differently: tests/original/compare.py shows where"
        )
    tasks, steps = len(jobs), len(jobs) * _STEPS
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return Beside(
        tasks=tasks,
        steps=steps,
        ours_steps=steps / seconds,
        original_steps=steps / sum(sum(one["seconds"][1:]) for one in episodes),
        ours_resets=tasks / reset_seconds,
        original_resets=tasks / sum(one["seconds"][0] for one in episodes),
        # In kilobytes, but for macOS.
        original_bytes=peak if sys.platform == "darwin" else peak * 1024,
    )


def _wander(game: Game, rng: np.random.Generator) -> tuple[list[str], list[list[Any]], list[float]]:
    """Play random commands; return them, the moment after each, and the seconds each took."""
    start = time.process_time()
    world = World(Room(game))
    said: list[list[Any]] = [[world.welcome(), int(world.won), world.won, world.admissible()]]
    seconds = [time.process_time() - start]
    commands: list[str] = []
    for draw in rng.random(_STEPS):
        admissible = said[-1][3]
        commands.append(admissible[int(draw * len(admissible))])
        start = time.process_time()
        answer = world.act(commands[-1]) or NOTHING_HAPPENS
        said.append([answer, int(world.won), world.won, world.admissible()])
        seconds.append(time.process_time() - start)
    return commands, said, seconds
