"""`proxmo table`: results side by side in the form of the paper's table 1."""

from __future__ import annotations

from pathlib import Path

import click

from proxmo.errors import UsageError

from . import options
from .display import show, show_json


@click.command("table")
@click.argument("runs", metavar="RUN...", nargs=-1, type=click.Path(path_type=Path))
@options.choice("--format", "How to write it", ("text", "markdown", "latex"), name="form")
@click.option("--published", is_flag=True, help="Add the figures of arXiv 2602.19225.")
@options.as_json("Print as JSON.")
@options.debug
def command(runs: tuple[Path, ...], form: str, published: bool, as_json: bool) -> None:
    """Set the results of RUNs side by side: success by task type, scores, difference to GRPO.

    A RUN is a directory of `proxmo eval --out`, or a training run, whose last evaluation counts.
    Runs of the same model and method share a row: mean and standard deviation in percent.
    """
    if not runs and not published:
        raise UsageError("give at least one RUN, or --published")
    from proxmo.evaluation.paper_table import measured_rows, notes, published_rows
    from proxmo.reporting.paper import FORMATS, paper_text

    rows = measured_rows(runs) + (published_rows() if published else [])
    if as_json:
        show_json(rows)
    elif form in FORMATS:
        click.echo(FORMATS[form](rows), nl=False)
    else:
        show(paper_text(rows))
        for note in notes(rows):
            click.echo(note)
