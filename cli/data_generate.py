"""`proxmo data generate`: generated games as official folders, for the original and its tools."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import click

from .display import show
from .failures import debug_option


@click.command("generate")
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Data directory to write into; --data takes it, as the original does.",
)
@click.option(
    "--episodes", type=click.IntRange(min=1), metavar="N", default=100, help="Games  [100]"
)
@click.option("--split", metavar="S", default="train", help="train, valid_seen, ...  [train]")
@click.option("--difficulty", metavar="D", default="default", help="Size of rooms  [default]")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="K",
    help="Draw the games with this seed  [the first N]",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
@debug_option
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
        click.echo(json.dumps(result, indent=2))
        return
    show(f"{types.total():,} games in {out / split}")
    for task_type, number in sorted(types.items()):
        show(f"{number:6,} {task_type}")
