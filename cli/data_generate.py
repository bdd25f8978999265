"""`proxmo data generate`: generated games as official folders, for the original and its tools."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from . import options
from .display import show, show_json


@click.command("generate")
@options.path(
    "--out",
    "Data directory to write into; --data takes it, as the original does.",
    file=False,
    required=True,
)
@options.count("--episodes", "Games", 100)
@options.text("--split", "train, valid_seen, ...", "train", metavar="S")
@options.text("--difficulty", "Size of rooms", "default", metavar="D")
@options.seed("Draw the games with this seed  [the first N]")
@options.as_json("Print what was written as JSON.")
@options.debug
def command(
    out: Path, episodes: int, split: str, difficulty: str, seed: int | None, as_json: bool
) -> None:
    """Write generated ALFWorld games as official folders (game.tw-pddl, traj_data.json).

    Equal arguments write equal games. valid_unseen has rooms that occur in no other split.
    """
    from proxmo_envs.alfworld.writer import draw, write_generated

    types: Counter[str] = Counter()
    for folder in write_generated(out, split, draw(episodes, seed), difficulty):
        types[folder.parent.name.partition("-")[0]] += 1
    if as_json:
        result = {"directory": str(out), "games": types.total(), "task_types": dict(types)}
        show_json(result)
        return
    show(f"{types.total():,} games in {out / split}")
    for task_type, number in sorted(types.items()):
        show(f"{number:6,} {task_type}")
