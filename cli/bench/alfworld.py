"""The ALFWorld engine: generated rooms of every size, and the original beside ours."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
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

from ..display import show_table
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

    def show(self) -> None:
        """Print a table of both."""
        rates = (self.ours_steps, self.original_steps), (self.ours_resets, self.original_resets)
        rows = [
            (name, f"{ours:,.0f}", f"{theirs:,.2f}", f"{ours / theirs:,.0f}")
            for name, (ours, theirs) in zip(("steps/s", "resets/s"), rates, strict=True)
        ]
        rows.append(("MB of the process", "", f"{self.original_bytes / 1e6:.0f}", ""))
        show_table((f"{self.tasks} tasks, {self.steps} steps", "ours", "original", "ratio"), rows)


@dataclass(frozen=True, slots=True)
class Played:
    """An episode: the commands, and the moment and CPU seconds of the reset and each of them.

    A moment is `[observation, score, done, admissible commands]`.
    """

    commands: list[str]
    moments: list[list[Any]]
    seconds: list[float]


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


def play(game: Game, choose: Callable[[list[str]], str], steps: int) -> Played:
    """Play with our engine until the game is won, or for so many steps.

    Args:
        game: the game.
        choose: returns a command, given the admissible ones.
        steps: the most steps.
    """
    played = Played([], [], [])
    start = time.process_time()
    world = World(Room(game))
    answer = world.welcome()
    while True:
        admissible = world.admissible()
        played.seconds.append(time.process_time() - start)
        played.moments.append([answer, int(world.won), world.won, admissible])
        if world.won or len(played.commands) == steps:
            return played
        played.commands.append(choose(admissible))
        start = time.process_time()
        answer = world.act(played.commands[-1]) or NOTHING_HAPPENS


def play_original(python: str, files: Sequence[Path], episodes: Sequence[Played]) -> list[Played]:
    """Send the commands of episodes to the original.

    Args:
        python: interpreter that has `alfworld`.
        files: the game file of each episode.
        episodes: as our engine played them.

    Raises:
        UsageError: that interpreter cannot play.
    """
    jobs = [
        json.dumps({"game_file": str(file.resolve()), "commands": episode.commands})
        for file, episode in zip(files, episodes, strict=True)
    ]
    lines = run_script(
        python,
        original.__file__,
        "\n".join(jobs),
        task="play the original",
        needs="`pip install alfworld pyyaml` (docs/alfworld.md)",
    )
    return [
        Played(episode.commands, **json.loads(line))
        for episode, line in zip(episodes, lines, strict=True)
    ]


def beside(data: Path, python: str, tasks: int) -> Beside:
    """Play official training games with random admissible commands in both engines.

    Args:
        data: an official data directory.
        python: interpreter that has `alfworld`.
        tasks: number of games.

    Raises:
        UsageError: that interpreter cannot play.
        ProxmoEnvError: the engines answer differently.
    """
    rng = np.random.default_rng(0)
    source = OfficialDirectory(data)
    ids = source.ids("train")
    chosen = ids[:: max(1, len(ids) // tasks)][:tasks]
    files = [source.path / task_id / GAME_FILE for task_id in chosen]
    ours, reading = [], 0.0
    for task_id, file in zip(chosen, files, strict=True):
        start = time.process_time()
        game, _ = read_game_file(file, task_id=task_id, split="train")
        reading += time.process_time() - start
        ours.append(play(game, lambda admissible: str(rng.choice(admissible)), _STEPS))
    theirs = play_original(python, files, ours)
    if [one.moments for one in theirs] != [one.moments for one in ours]:
        raise ProxmoEnvError(
            "the original answers differently: tests/original/compare.py shows where"
        )
    steps = sum(len(one.commands) for one in ours)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return Beside(
        tasks=len(ours),
        steps=steps,
        ours_steps=steps / sum(sum(one.seconds[1:]) for one in ours),
        original_steps=steps / sum(sum(one.seconds[1:]) for one in theirs),
        ours_resets=len(ours) / (reading + sum(one.seconds[0] for one in ours)),
        original_resets=len(ours) / sum(one.seconds[0] for one in theirs),
        # In kilobytes, but for macOS.
        original_bytes=peak if sys.platform == "darwin" else peak * 1024,
    )
