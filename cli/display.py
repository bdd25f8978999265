"""Output of the commands: progress on stderr (a live panel or plain lines), results on stdout."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proxmo.listener import Listener

if TYPE_CHECKING:
    from rich.console import RenderableType

_PIPE_WIDTH = 500


@contextmanager
def progress(title: str, *, minutes: float | None = None, keep: bool = True) -> Iterator[Listener]:
    """Show progress while the block runs.

    Args:
        title: what is going on.
        minutes: the time budget, for the time left.
        keep: leave the last state of the panel on the terminal.
    """
    from rich.console import Console

    from proxmo.reporting.history import History

    console = Console(stderr=True)
    history = History(minutes)
    listener: Listener
    if console.is_terminal and not console.is_dumb_terminal:
        from proxmo.reporting.live import LiveDisplay

        listener = LiveDisplay(console, title, history, keep=keep)
    else:
        from proxmo.reporting.lines import PlainLines

        listener = PlainLines(sys.stderr, history)
    handler = _ListenerHandler(listener)
    logging.getLogger().addHandler(handler)
    try:
        yield listener
    finally:
        logging.getLogger().removeHandler(handler)
        listener.close()


def show(*results: RenderableType) -> None:
    """Print results on stdout; a pipe gets whole lines without colour, frames and padding."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    text = io.StringIO()
    # Without a terminal rich would break lines at 80 characters.
    pipe = Console(file=text, width=_PIPE_WIDTH)
    for result in results:
        if console.is_terminal:
            console.print(result)
            continue
        if isinstance(result, Table):
            result.box, result.pad_edge = None, False
        pipe.print(result)
    for line in text.getvalue().splitlines():
        click.echo(line.rstrip())


def show_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> None:
    """Print a table of cells; the first `words` columns hold words, the others numbers."""
    from proxmo.reporting.tables import table

    show(table(headings, rows, words=words))


def show_json(result: Any) -> None:
    """Print a result on stdout as JSON: paths as text, dataclasses and `to_json` as objects."""

    def plain(value: Any) -> Any:
        if isinstance(value, Path):
            return str(value)
        if hasattr(value, "to_json"):
            return value.to_json()
        return {field.name: getattr(value, field.name) for field in fields(value)}

    click.echo(json.dumps(result, indent=2, default=plain))


class _ListenerHandler(logging.Handler):
    """Says warnings of the libraries through the listener, so that they do not tear the panel."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(logging.WARNING)
        self._listener = listener

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._listener.message(f"{record.levelname.lower()}: {record.getMessage()}")
        except Exception:
            self.handleError(record)
