"""Play official game files with the original engine and with ours, and compare every word.

Run by hand, as it needs an interpreter that has the original (docs/alfworld.md says how):

    python tests/original/compare.py PYTHON DATA [--games 48] [--steps 60]

It plays games of every split of a data directory with commands that win, wander, treat things and
make no sense, and exits with 1 at the first difference.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from proxmo_envs.alfworld import original
from proxmo_envs.alfworld.expert import plan
from proxmo_envs.alfworld.games import GAME_FILE, Game
from proxmo_envs.alfworld.official import OfficialDirectory
from proxmo_envs.alfworld.room import Room
from proxmo_envs.alfworld.text import NOTHING_HAPPENS
from proxmo_envs.alfworld.world import World

NONSENSE = ("", "dance", "LOOK", "go to cabinet 99", "take mug 1", "put mug 1 in/on desk 1")
Moment = list[object]


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
        answer = world.act(command)
        moments.append([answer or NOTHING_HAPPENS, int(world.won), world.won, world.admissible()])
    return commands, moments


def main() -> int:
    """Play and compare; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("python", help="an interpreter that has alfworld")
    parser.add_argument("data", type=Path, help="an official data directory")
    parser.add_argument("--games", type=int, default=48, help="number of games")
    parser.add_argument("--steps", type=int, default=60, help="most steps per game")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    source = OfficialDirectory(options.data)
    ids = [task_id for split in source.splits for task_id in source.ids(split)]
    jobs, expected = [], []
    for task_id in rng.permutation(ids)[: options.games].tolist():
        commands, moments = episode(source.game(task_id), options.steps, rng)
        file = (source.path / task_id / GAME_FILE).resolve()
        jobs.append({"game_file": str(file), "commands": commands})
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
