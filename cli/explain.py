"""`proxmo explain`: why the steps of a run got their advantages."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click

from proxmo.errors import UsageError

from .display import show
from .failures import DONE, debug_option


@click.command("explain")
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--iteration", type=int, metavar="I", help="Iteration, from 1  [the latest]")
@click.option("--episode", type=int, metavar="E", help="Episode of the iteration, from 0.")
@click.option("--step", type=int, metavar="T", help="Step of the episode, from 0.")
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="M",
    help="Compare with this method only (several are possible)  [all]",
)
@click.option(
    "--neighbours",
    type=click.IntRange(min=0),
    default=10,
    metavar="N",
    help="Neighbours, or steps of the overview, to show  [10]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, all neighbours.")
@debug_option
def command(
    run: Path,
    iteration: int | None,
    episode: int | None,
    step: int | None,
    methods: tuple[str, ...],
    neighbours: int,
    as_json: bool,
) -> int:
    """Show why the steps of the run in RUN got their advantages.

    Without --episode and --step: the iteration at a glance, and which steps are worth a look. With
    both: the step's return, its baseline, the states that made it, what other methods would give.
    """
    if (episode is None) != (step is None):
        raise UsageError("give --episode and --step together, or neither for the overview")
    if methods and episode is None:
        raise UsageError("--method compares a step: give --episode and --step too")
    from proxmo.reporting.explanation_tables import overview_tables, step_tables
    from proxmo.reporting.explanations import read_iteration

    recorded = read_iteration(run, iteration)
    plain = not sys.stdout.isatty()
    if episode is None or step is None:
        overview = recorded.overview(largest=neighbours)
        result, tables = asdict(overview), overview_tables(overview, plain=plain)
    else:
        report = recorded.explain(episode, step, methods or None)
        result = asdict(report)
        tables = step_tables(report, neighbours=neighbours, plain=plain)
    if as_json:
        click.echo(json.dumps(result, indent=2, ensure_ascii=False))
        return DONE
    for table in tables:
        show(table)
    return DONE
