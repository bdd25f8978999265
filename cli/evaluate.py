"""`proxmo eval`: success on a panel of tasks, with its interval, in total and by task type."""

from __future__ import annotations

from typing import Any

import click

from proxmo.errors import DataError, UsageError

from . import options
from .display import progress, show, show_json
from .failures import DONE, INCOMPLETE
from .player_options import PlayerOptions, player_options


def _seeds(_: click.Context, __: click.Parameter, text: str) -> tuple[int, ...]:
    """Read `0,1,2`."""
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not of the form 0 or 0,1,2") from None


@click.command("eval")
@player_options
@options.text(
    "--panel", "Tasks to play: a name that `proxmo panels` lists, or a panel file.", metavar="P"
)
@options.env("Environment  [the checkpoint's, else ALFWorld-v0]")
@options.text(
    "--split",
    "Split to choose tasks from  [the checkpoint's, else the environment's for evaluation]",
    metavar="S",
)
@options.data("Where the tasks come from  [as in training]")
@options.count("--episodes", "Tasks to play  [a checkpoint: as in training, else all of the split]")
@click.option(
    "--seeds",
    "--seed",
    metavar="N,N",
    default="0",
    callback=_seeds,
    help="Seeds of the player's draws; each plays every task  [0]",
)
@options.count("--trials", "Episodes per task and seed, for pass@k", 1, metavar="K")
@options.count(
    "--workers",
    "Episodes played at the same time; does not change the results  [64, an API 8]",
)
@options.path(
    "--out", "Keep results and transcripts; the same command continues what was interrupted."
)
@options.as_json()
@options.debug
def command(
    panel: str | None,
    env: str | None,
    split: str | None,
    data: str | None,
    episodes: int | None,
    as_json: bool,
    **settings: Any,
) -> int:
    """Measure the success of a checkpoint, a model, the expert or a random player.

    Each task of the panel is played once per seed and trial. Without --panel the tasks are
    --episodes of --split, always the same ones. The environment and the prompt of a checkpoint are
    those it was trained with. Exit code 3: some episodes ended in an error and are not scored; with
    --out the same command plays them again.
    """
    player = PlayerOptions.take(settings)
    choice = {"env": env, "split": split, "episodes": episodes}
    given = [f"--{name}" for name, value in choice.items() if value is not None]
    if panel is not None and given:
        raise UsageError(f"--panel says which tasks are played; leave {', '.join(given)} out")
    with progress(f"proxmo eval · {player.name}", keep=False) as listener:
        listener.phase("loading", text=panel or "")
        from proxmo.evaluation import open_panel

        settings["listener"] = listener
        opened = None if panel is None else open_panel(panel, data)
        try:
            result = player.evaluate(opened, {**choice, "data": data}, settings)
        except (UsageError, DataError):
            raise
        except BaseException:
            if (out := settings["out"]) is not None and (out / "results.jsonl").exists():
                listener.message(f"what was played is kept in {out}; the same command goes on")
            raise
    if as_json:
        show_json(result)
    else:
        from proxmo.reporting.tables import evaluation_facts, evaluation_table

        show(evaluation_table(result), evaluation_facts(result))
    return DONE if result.complete else INCOMPLETE
