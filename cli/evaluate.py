"""`proxmo eval`: success on a panel of tasks, with its interval, in total and by task type."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proxmo.errors import DataError, UsageError

from .asking import Asked, player_flags
from .display import progress, show
from .failures import DONE, INCOMPLETE, debug_option

if TYPE_CHECKING:
    from proxmo.evaluation import Evaluation
    from proxmo.listener import Listener


def _seeds(_: click.Context, __: click.Parameter, text: str) -> tuple[int, ...]:
    """Read `0,1,2`."""
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not of the form 0 or 0,1,2") from None


@click.command("eval")
@player_flags
@click.option(
    "--panel",
    metavar="P",
    help="Tasks to play: a name that `proxmo panels` lists, or a panel file.",
)
@click.option("--env", metavar="ID", help="Environment  [the checkpoint's, else ALFWorld-v0]")
@click.option(
    "--split",
    metavar="S",
    help="Split to choose tasks from  [the checkpoint's, else valid_unseen, WebShop test]",
)
@click.option("--data", metavar="PATH", help="Where the tasks come from  [as in training]")
@click.option(
    "--episodes",
    type=click.IntRange(min=1),
    metavar="N",
    help="Tasks to play  [a checkpoint: as in training, else all of the split]",
)
@click.option(
    "--seeds",
    "--seed",
    metavar="N,N",
    default="0",
    callback=_seeds,
    help="Seeds of the player's draws; each plays every task  [0]",
)
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    metavar="K",
    default=1,
    help="Episodes per task and seed, for pass@k  [1]",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Episodes played at the same time; does not change the results  [64, an API 8]",
)
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Keep results and transcripts; the same command continues what was interrupted.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@debug_option
def command(
    panel: str | None,
    env: str | None,
    split: str | None,
    data: str | None,
    episodes: int | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Measure the success of a checkpoint, a model, the expert or a random player.

    Each task of the panel is played once per seed and trial. Without --panel the tasks are
    --episodes of --split, always the same ones. The environment and the prompt of a checkpoint are
    those it was trained with. Exit code 3: some episodes ended in an error and are not scored; with
    --out the same command plays them again.
    """
    asked = Asked.pop(options)
    choice = {"env": env, "split": split, "episodes": episodes}
    given = [f"--{name}" for name, value in choice.items() if value is not None]
    if panel is not None and given:
        raise UsageError(f"--panel says which tasks are played; leave {', '.join(given)} out")
    with progress(f"proxmo eval · {asked.name}", keep=False) as listener:
        listener.phase("loading", text=panel or "")
        from proxmo.evaluation import open_panel

        options["listener"] = listener
        opened = None if panel is None else open_panel(panel, data)
        with _Kept(options["out"], listener):
            result = asked.evaluate(opened, {**choice, "data": data}, options)
    _print(result, as_json=as_json)
    return DONE if result.complete else INCOMPLETE


class _Kept:
    """Says what is left of an evaluation that does not come to its end."""

    def __init__(self, out: Path | None, listener: Listener) -> None:
        self._out = out
        self._listener = listener

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or self._out is None or issubclass(kind, UsageError | DataError):
            return
        if (self._out / "results.jsonl").exists():
            self._listener.message(
                f"what was played is kept in {self._out}; the same command goes on"
            )


def _print(evaluation: Evaluation, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(evaluation.to_json(), indent=2))
        return
    from proxmo.reporting.tables import evaluation_facts, evaluation_table

    show(evaluation_table(evaluation, plain=not sys.stdout.isatty()))
    show(evaluation_facts(evaluation))
