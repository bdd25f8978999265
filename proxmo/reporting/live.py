"""The live display of a run on a terminal: a panel stays in place, messages scroll above it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from proxmo.formats import duration, interval, percent, sparkline
from proxmo.listener import Listener
from proxmo.reporting.history import History, recent_mean
from proxmo.reporting.lines import COLUMNS, evaluation_line

# Drawing takes time from training on a small machine.
REFRESH_PER_SECOND = 2
_BAR_WIDTH = 32


class LiveDisplay(Listener):
    """Shows phases as bars and the metrics of training with their trend."""

    def __init__(
        self, console: Console, title: str, history: History | None = None, *, keep: bool = True
    ) -> None:
        """Take over the bottom of the terminal until `close`, which leaves the panel if `keep`."""
        self._console = console
        self._title = title
        self._history = history or History()
        self._phases = Progress(
            # As wide as the rows below, whose cells stand two blanks apart.
            TextColumn("{task.description}", markup=False, table_column=Column(min_width=19)),
            BarColumn(_BAR_WIDTH),
            _Elapsed(),
            TextColumn("{task.fields[text]}", style="dim", markup=False),
            get_time=self._history.elapsed,
        )
        self._current: Task | None = None
        self._evaluation = ""
        self._live = Live(
            console=console,
            get_renderable=self.render,
            refresh_per_second=REFRESH_PER_SECOND,
            transient=not keep,
            # Other output scrolls above the panel instead of tearing it; results do not.
            redirect_stderr=True,
            redirect_stdout=False,
        )
        self._live.start()

    def phase(
        self,
        name: str,
        *,
        done: int | None = None,
        total: int | None = None,
        text: str = "",
        **details: Any,
    ) -> None:
        """Show a phase as a bar; phases before the first iteration stay visible when they end."""
        if self._current is None or self._current.description != name:
            self._end_phase()
            for task in self._phases.tasks:
                if self._history.iteration or task.description == name:
                    self._phases.remove_task(task.id)
            self._phases.add_task(name, total=None, text="")
            self._current = self._phases.tasks[-1]
        shown = text or self._current.fields["text"]
        self._phases.update(self._current.id, completed=done, total=total, text=shown)

    def iteration(self, metrics: Mapping[str, float], iteration: int, total: int) -> None:
        """Show the metrics of an iteration."""
        self._end_phase()
        for task in self._phases.tasks:
            self._phases.remove_task(task.id)
        self._history.record(metrics, iteration, total)

    def evaluation(self, summary: Mapping[str, Any]) -> None:
        """Keep the result in the panel and in the scrollback."""
        self._end_phase()
        self._evaluation = evaluation_line(summary)
        self.message(self._evaluation)

    def message(self, text: str) -> None:
        """Print a message above the panel."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Draw the last state and give the terminal back."""
        self._end_phase()
        self._live.stop()

    def render(self) -> RenderableType:
        """Return the panel as it stands; called from the drawing thread."""
        parts: list[RenderableType] = []
        if self._phases.tasks:
            parts.append(self._phases)
        if self._history.iteration:
            parts += [self._progress_row(), self._metric_rows()]
            if self._history.task_types():
                parts.append(self._task_type_rows())
        if self._evaluation:
            parts.append(Text(self._evaluation, style="dim"))
        if not parts:
            parts.append(Text("starting", style="dim"))
        return Panel(Group(*parts), title=Text(self._title), title_align="left", expand=False)

    def _end_phase(self) -> None:
        if (task := self._current) is not None:
            self._phases.update(task.id, completed=task.total or 1, total=task.total or 1)
            self._phases.stop_task(task.id)
        self._current = None

    def _progress_row(self) -> Table:
        history, left = self._history, self._history.time_left()
        table = _grid()
        table.add_row(
            Text(f"iteration {history.iteration}/{history.total}", style="bold"),
            ProgressBar(total=history.total, completed=history.iteration, width=_BAR_WIDTH),
            duration(history.elapsed()),
            Text("" if left is None else f"{duration(left)} left", style="dim"),
        )
        return table

    def _metric_rows(self) -> Table:
        table, history = _grid(), self._history
        success = history.series.get("train/success_rate", [])
        if success:
            low = history.latest("train/success_rate_low")
            high = history.latest("train/success_rate_high")
            bounds = "" if low is None or high is None else interval(low, high)
            rate = Text(percent(success[-1]), style="bold green")
            table.add_row("success rate", rate, bounds, sparkline(success, low=0, high=1))
        for key, label, write in COLUMNS:
            if values := history.series.get(key):
                table.add_row(label, write(values[-1]), "", sparkline(values))
        return table

    def _task_type_rows(self) -> Table:
        table = _grid()
        for name, values in self._history.task_types().items():
            trend = sparkline(values, low=0, high=1)
            table.add_row(Text(name, style="cyan"), percent(recent_mean(values)), trend)
        return table


class _Elapsed(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f" {duration(task.elapsed or 0.0)} ")


def _grid() -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(min_width=18)
    return table
