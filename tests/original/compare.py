"""Play written games with the original engine and with ours, and compare every word.

Run by hand, as it needs an interpreter that has the original (docs/alfworld.md says how):

    python tests/original/compare.py PYTHON [--games 8] [--steps 60]

Of every difficulty it writes `--games` games of each task type, plays each with commands that win,
wander, treat things and make no sense, and exits with 1 at the first difference.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np

from proxmo_envs.alfworld import original
from proxmo_envs.alfworld.expert import plan
from proxmo_envs.alfworld.games import TASK_TYPES, Game, Grammar, read_game_file
from proxmo_envs.alfworld.generator import DIFFICULTIES, SPLIT_SIZES, generate
from proxmo_envs.alfworld.room import Room
from proxmo_envs.alfworld.text import NOTHING_HAPPENS
from proxmo_envs.alfworld.world import World
from tests.original.game_files import write_game

GRAMMARS = get_args(Grammar)
NONSENSE = ("", "dance", "LOOK", "go to cabinet 99", "take mug 1", "put mug 1 in/on desk 1")
Moment = list[object]


def numbers(difficulty: str, split: str, games: int) -> list[int]:
    """Return the numbers of the first games of each task type."""
    found: Counter[str] = Counter()
    chosen: list[int] = []
    for number in range(10_000):
        task_type = generate(split, number, difficulty).goal.task_type
        if found[task_type] < games:
            found[task_type] += 1
            chosen.append(number)
        if found.total() == games * len(TASK_TYPES):
            break
    return chosen


def episode(game: Game, steps: int, rng: np.random.Generator) -> tuple[list[str], list[Moment]]:
    """Play with our engine: commands and, from the reset on, what each led to."""
    world = World(Room(game))
    moments: list[Moment] = [[world.welcome(), int(world.won), world.won, world.admissible()]]
    commands: list[str] = []
    ending = plan(game)
    while len(commands) < steps and not world.won:
        admissible = world.admissible()
        verbs = sorted({command.split()[0] for command in admissible})
        verb = str(rng.choice(verbs))
        command = str(rng.choice([c for c in admissible if c.split()[0] == verb]))
        if rng.random() < 0.1:
            command = str(rng.choice(NONSENSE))
        elif len(commands) >= steps - len(ending):
            # Wins where the wandering before has not moved the things.
            command = ending[len(commands) - steps + len(ending)]
        commands.append(command)
        said = world.act(command)
        moments.append([said or NOTHING_HAPPENS, int(world.won), world.won, world.admissible()])
    return commands, moments


def main() -> int:
    """Write, play, compare; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("python", help="an interpreter that has alfworld")
    parser.add_argument("--games", type=int, default=8, help="games per task type and difficulty")
    parser.add_argument("--steps", type=int, default=60, help="most steps a game")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    jobs, expected = [], []
    with tempfile.TemporaryDirectory() as folder:
        for index, difficulty in enumerate(DIFFICULTIES):
            split = list(SPLIT_SIZES)[index % len(SPLIT_SIZES)]
            chosen = numbers(difficulty, split, options.games)
            for number in chosen:
                # Every other game in the older grammar.
                written = replace(
                    generate(split, number, difficulty), grammar=GRAMMARS[len(jobs) % 2]
                )
                path = write_game(Path(folder), written)
                game, _ = read_game_file(path, task_id=str(path), split=split)
                commands, moments = episode(game, options.steps, rng)
                jobs.append({"game_file": str(path), "commands": commands})
                expected.append(moments)
        process = subprocess.run(
            [options.python, original.__file__],
            input="\n".join(map(json.dumps, jobs)),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    played = [json.loads(line)["moments"] for line in process.stdout.splitlines()]
    assert len(played) == len(jobs)
    for job, ours, theirs in zip(jobs, expected, played, strict=True):
        for number, (our, their) in enumerate(zip(ours, theirs, strict=True)):
            if our != their:
                print(f"{job['game_file']}: after {job['commands'][:number]}:")
                print(f"  original: {their}\n  ours:     {our}")
                return 1
    won = sum(moments[-1][2] is True for moments in expected)
    steps = sum(len(job["commands"]) for job in jobs)
    print(f"{len(jobs)} games ({won} won), {steps} steps: identical")
    return 0


if __name__ == "__main__":
    sys.exit(main())
