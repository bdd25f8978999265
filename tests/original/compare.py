"""Play official game files with the original engine and with ours, and compare every word.

Run by hand, as it needs an interpreter that has the original (docs/alfworld.md says how):

    python tests/original/compare.py PYTHON DATA [--games 48] [--steps 60]

It plays games of every split of a data directory with commands that win, wander, treat things and
make no sense, and exits with 1 at the first difference.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from proxmo_cli.bench.alfworld import play, play_original
from proxmo_envs.alfworld.expert import plan
from proxmo_envs.alfworld.games import GAME_FILE, Game
from proxmo_envs.alfworld.official import OfficialDirectory

NONSENSE = ("", "dance", "LOOK", "go to cabinet 99", "take mug 1", "put mug 1 in/on desk 1")


def wanderer(game: Game, steps: int, rng: np.random.Generator) -> Callable[[list[str]], str]:
    """Tries each verb equally often; wins at the end where the wandering did not move things."""
    ending = plan(game)
    left = steps

    def choose(admissible: list[str]) -> str:
        nonlocal left
        left -= 1
        if rng.random() < 0.1:
            return str(rng.choice(NONSENSE))
        if left < len(ending):
            return ending[len(ending) - left - 1]
        verb = rng.choice(sorted({command.split()[0] for command in admissible}))
        return str(rng.choice([c for c in admissible if c.split()[0] == verb]))

    return choose


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
    chosen = rng.permutation(ids)[: options.games].tolist()
    games = [source.game(task_id) for task_id in chosen]
    files = [source.path / task_id / GAME_FILE for task_id in chosen]
    ours = [play(game, wanderer(game, options.steps, rng), options.steps) for game in games]
    theirs = play_original(options.python, files, ours)
    for file, our, their in zip(files, ours, theirs, strict=True):
        for number, (mine, other) in enumerate(zip(our.moments, their.moments, strict=True)):
            if mine != other:
                print(f"{file}: after {our.commands[:number]}:")
                print(f"  original: {other}\n  ours:     {mine}")
                return 1
    won = sum(one.moments[-1][2] is True for one in ours)
    steps = sum(len(one.commands) for one in ours)
    print(f"{len(games)} games ({won} won), {steps} steps: identical")
    return 0


if __name__ == "__main__":
    sys.exit(main())
