"""What `proxmo bench env` measures of ALFWorld: generated rooms of every size, and the original."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from proxmo_envs.alfworld import original
from proxmo_envs.alfworld.games import GAME_FILE, Game, read_game_file
from proxmo_envs.alfworld.generator import DIFFICULTIES, generate
from proxmo_envs.alfworld.official import OfficialDirectory
from proxmo_envs.alfworld.packed import write_packed
from proxmo_envs.alfworld.room import Room
from proxmo_envs.alfworld.text import NOTHING_HAPPENS
from proxmo_envs.alfworld.world import World
from proxmo_envs.bench import Beside, Subject
from proxmo_envs.errors import InvalidOptionError, ProxmoEnvError, quote

# Games in the packed file of each size.
_GAMES = 200
_STEPS = 40


def sizes(folder: Path) -> Mapping[str, dict[str, Any]]:
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
    """Play games of an official data directory with both engines; equal answers are checked.

    Raises InvalidOptionError for an interpreter without `alfworld`, and ProxmoEnvError when an
    answer of the original is another than ours.
    """
    jobs, ours, seconds, reset_seconds = [], [], 0.0, 0.0
    rng = np.random.default_rng(0)
    source = OfficialDirectory(data)
    ids = source.ids("train")
    for task_id in ids[:: max(1, len(ids) // tasks)][:tasks]:
        file = source.path / task_id / GAME_FILE
        start = time.process_time()
        game, _ = read_game_file(file, task_id=task_id, split="train")
        reset_seconds += time.process_time() - start
        commands, said, spent = _wander(game, rng)
        jobs.append({"game_file": str(file), "commands": commands})
        ours.append(said)
        reset_seconds += spent[0]
        seconds += sum(spent[1:])
    episodes = _original(python, jobs)
    if [episode["moments"] for episode in episodes] != ours:
        raise ProxmoEnvError(
            "the original answered otherwise than we do: tests/original/compare.py shows where"
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
    """Play random commands: the commands, what each led to, the seconds it took."""
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


def _original(python: str, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Let the original play, in its own interpreter."""
    lines = "\n".join(map(json.dumps, jobs))
    try:
        done = subprocess.run(
            [python, original.__file__], input=lines, capture_output=True, text=True, check=True
        )
    except OSError as error:
        raise InvalidOptionError(f"{quote(python)} cannot be started: {error.strerror}") from error
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["it gave no reason"])[-1]
        raise InvalidOptionError(
            f"{quote(python)} cannot play the original: {last}; it needs "
            "`pip install alfworld pyyaml` (docs/alfworld.md)"
        ) from error
    return [json.loads(line) for line in done.stdout.splitlines()]


SUBJECT = Subject(sizes, beside)
