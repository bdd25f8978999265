"""`proxmo explain`: why the steps of a run got their advantages."""

from __future__ import annotations

from pathlib import Path

import click

from proxmo.errors import UsageError

from . import options
from .display import show, show_json


@click.command("explain")
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@options.count("--iteration", "Iteration, from 1  [the latest]", minimum=None, metavar="I")
@options.count("--episode", "Episode of the iteration, from 0.", minimum=None, metavar="E")
@options.count("--step", "Step of the episode, from 0.", minimum=None, metavar="T")
@options.text(
    "--method",
    "Compare with this method only (several are possible)  [all]",
    name="methods",
    metavar="M",
    multiple=True,
)
@options.count("--neighbours", "Neighbours, or steps of the overview, to show", 10, minimum=0)
@options.as_json("Print the result as JSON, all neighbours.")
@options.debug
def command(
    run: Path,
    iteration: int | None,
    episode: int | None,
    step: int | None,
    methods: tuple[str, ...],
    neighbours: int,
    as_json: bool,
) -> None:
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
    if episode is None or step is None:
        overview = recorded.overview(largest=neighbours)
        if as_json:
            show_json(overview)
        else:
            show(*overview_tables(overview))
        return
    report = recorded.explain(episode, step, methods or None)
    if as_json:
        show_json(report)
    else:
        show(*step_tables(report, neighbours=neighbours))
