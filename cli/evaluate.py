"""`proxmo eval`: success on a fixed set of tasks, with its interval, in total and by task type."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proxmo.errors import UsageError

from .display import progress, show
from .failures import DONE, FAILED, INCOMPLETE, debug_option

if TYPE_CHECKING:
    from proxmo.evaluation import Evaluation

_DEFAULT_ENV = "ALFWorld-v0"
_DEFAULT_SPLIT = "valid_unseen"


@click.command("eval")
@click.option(
    "--checkpoint",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="A checkpoint, or a run directory for its latest one.",
)
@click.option("--policy", metavar="NAME", help="expert or random, instead of a checkpoint.")
@click.option("--env", metavar="ID", help="Environment  [that of the checkpoint]")
@click.option("--split", metavar="S", help="Tasks to play  [that of the checkpoint]")
@click.option("--data", metavar="PATH", help="Where the tasks come from  [as in training]")
@click.option(
    "--episodes", type=click.IntRange(min=1), metavar="N", help="Tasks to play  [as in training]"
)
@click.option(
    "--temperature",
    type=click.FloatRange(min=0),
    metavar="T",
    help="Sampling temperature, 0 is greedy  [as in training]",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, metavar="N", help="Seed  [0]")
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    default=64,
    metavar="N",
    help="Episodes played at the same time  [64]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@debug_option
def command(
    checkpoint: Path | None,
    policy: str | None,
    env: str | None,
    split: str | None,
    data: str | None,
    episodes: int | None,
    temperature: float | None,
    seed: int,
    batch: int,
    as_json: bool,
) -> int:
    """Measure the success of a checkpoint, the expert or a random player.

    The environment and the prompt of a checkpoint are those it was trained with.
    """
    if (checkpoint is None) == (policy is None):
        raise UsageError("give either --checkpoint DIR or --policy expert|random")
    if policy is not None and temperature is not None:
        raise UsageError("--temperature belongs to --checkpoint; a --policy does not sample text")
    with progress(f"proxmo eval · {policy or checkpoint}", keep=False) as listener:
        if checkpoint is not None:
            from proxmo.evaluation import evaluate_checkpoint

            evaluation = evaluate_checkpoint(
                checkpoint,
                env=env,
                split=split,
                data=data,
                episodes=episodes,
                temperature=temperature,
                seed=seed,
                batch_size=batch,
                listener=listener,
            )
        else:
            from proxmo.evaluation import evaluate_policy

            evaluation = evaluate_policy(
                policy or "",
                env=env or _DEFAULT_ENV,
                split=split or _DEFAULT_SPLIT,
                data=data,
                episodes=episodes,
                seed=seed,
                batch_size=batch,
                listener=listener,
            )
    _print(evaluation, as_json=as_json)
    if not evaluation.errors:
        return DONE
    return INCOMPLETE if evaluation.episodes else FAILED


def _print(evaluation: Evaluation, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(evaluation.to_json(), indent=2))
        return
    from proxmo.reporting.tables import evaluation_facts, evaluation_table

    show(evaluation_table(evaluation, plain=not sys.stdout.isatty()))
    show(evaluation_facts(evaluation))
