"""`proxmo compare`: two evaluations of the same panel, task by task."""

from __future__ import annotations

from pathlib import Path

import click

from . import options
from .display import show, show_json


@click.command("compare")
@click.argument("first", metavar="A", type=click.Path(path_type=Path))
@click.argument("second", metavar="B", type=click.Path(path_type=Path))
@options.as_json("Print as JSON.")
@options.debug
def command(first: Path, second: Path, as_json: bool) -> None:
    """Compare two evaluations of the same panel: what does B win that A does not?

    A and B are directories that `proxmo eval --out` made. Each task is a pair, so that easy and
    hard tasks do not blur the difference: its interval is a bootstrap over tasks, the p-value the
    exact McNemar test's. Panels of different hashes are refused.
    """
    from proxmo.evaluation.comparison import compare
    from proxmo.evaluation.results import read_evaluation
    from proxmo.reporting.tables import comparison_facts, comparison_table

    comparison = compare(read_evaluation(first), read_evaluation(second))
    if as_json:
        show_json(comparison.to_json())
    else:
        show(comparison_table(comparison), comparison_facts(comparison))
