"""Explanations of recorded credit as tables: rich ones on a terminal, aligned columns elsewhere."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from proxmo.formats import percent
from proxmo.reporting.explained import Overview, StepReport

# Longest observation of a table; a step's own is shown whole.
_BRIEF = 70


def overview_tables(overview: Overview, *, plain: bool) -> Iterator[RenderableType]:
    """What an iteration's credit was: facts, groups, the steps furthest from their baseline."""
    facts = {"iteration": str(overview.iteration), "method": _method(overview)}
    values = {name.removeprefix("credit/"): one for name, one in overview.diagnostics.items()}
    # The groups below show the success rates one by one.
    facts |= {
        name: f"{one:.4g}" for name, one in values.items() if not name.startswith("success_rate_")
    }
    yield _facts(facts | _notes(overview.notes))
    words = ("task id", "task")
    numbers = ("group", "episodes", "won", "steps", "mean return", "w won", "w lost")
    groups = _table("Groups", numbers + words, words, plain=plain)
    for group in overview.groups:
        groups.add_row(
            str(group.group),
            f"{group.first_episode}-{group.last_episode}",
            str(group.wins),
            str(group.steps),
            f"{group.return_mean:.3f}",
            _weight(group.modulation_won),
            _weight(group.modulation_lost),
            Text(group.task_id),
            _brief(group.task),
        )
    yield groups
    if not overview.largest:
        return
    headings = ("episode", "step", "return", "A step", "A", "action", "observation")
    largest = _table(
        "Steps furthest from their baseline", headings, ("action", "observation"), plain=plain
    )
    for step in overview.largest:
        largest.add_row(
            str(step.episode),
            str(step.step),
            f"{step.step_return:.3f}",
            f"{step.step_advantage:+.3f}",
            f"{step.advantage:+.3f}",
            _brief(step.action or "-"),
            _brief(step.observation),
        )
    yield largest


def step_tables(report: StepReport, *, neighbours: int, plain: bool) -> Iterator[RenderableType]:
    """Why a step got its advantage: facts, its neighbours, what other methods give it."""
    yield _facts(_step_facts(report) | _notes(report.notes))
    if report.neighbours:
        shown = report.neighbours[:neighbours]
        title = f"Baseline from {len(report.neighbours)} states, {len(shown)} shown"
        headings = ("similarity", "weight", "mean return", "steps", "first at", "observation")
        table = _table(title, headings, ("observation",), plain=plain)
        for one in shown:
            table.add_row(
                f"{one.similarity:.3f}",
                f"{one.weight:.4f}",
                f"{one.step_return:.3f}",
                str(one.count),
                f"{one.episode}:{one.step}",
                _brief(one.text or "-"),
            )
        yield table
    if report.by_method or report.left_out:
        table = _table("By method, default options", ("method", "A"), ("method",), plain=plain)
        for name, value in sorted(report.by_method.items(), key=lambda item: -item[1]):
            table.add_row(Text(name), f"{value:+.3f}")
        for name, reason in report.left_out.items():
            table.add_row(Text(name), Text(reason))
        yield table


def _step_facts(report: StepReport) -> dict[str, str]:
    wins = round(report.success_rate * report.group_size)
    facts = {
        "step": f"iteration {report.iteration}, episode {report.episode}, step {report.step}",
        "method": _method(report),
        "task": f"{report.task} ({report.task_id}, group {report.group})",
        "episode": f"{report.outcome}, return {report.episode_return:.3f}; "
        f"{wins} of {report.group_size} won ({percent(report.success_rate)})",
        "observation": report.observation,
        "action": report.action or "none that the world could take",
        "reward": f"{report.reward:.3f}",
        "return G": f"{report.step_return:.4f}",
    }
    if report.baseline is not None:
        facts["baseline B"] = f"{report.baseline:.4f}"
    if report.value is not None:
        facts["value V"] = f"{report.value:.4f}"
    weighted = "" if report.modulation is None else f", modulated by {report.modulation:.4f}"
    return facts | {
        "A episode": f"{report.episode_advantage:+.4f}{weighted}",
        "A step": f"{report.step_advantage:+.4f}",
        "A": f"{report.advantage:+.4f} = A episode + {report.omega:g} A step",
    }


def _method(told: Overview | StepReport) -> str:
    options = ", ".join(f"{name} {value}" for name, value in told.options.items())
    return f"{told.method} ({options})"


def _weight(modulation: float | None) -> str:
    return "-" if modulation is None else f"{modulation:.4f}"


def _notes(notes: Iterable[str]) -> dict[str, str]:
    text = "; ".join(notes)
    return {"note": text} if text else {}


def _brief(text: str) -> Text:
    return Text(textwrap.shorten(text, _BRIEF, placeholder=" ..."))


def _facts(facts: dict[str, str]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(min_width=15)
    table.add_column(overflow="fold")
    for name, text in facts.items():
        # Blank lines of an observation would tear the column apart.
        table.add_row(name, Text(" ".join(text.split())))
    return table


def _table(title: str, headings: Sequence[str], words: Sequence[str], *, plain: bool) -> Table:
    """A table of numbers, except for the columns of words."""
    table = Table(
        title=title,
        title_justify="left",
        box=None if plain else box.ROUNDED,
        pad_edge=not plain,
    )
    for heading in headings:
        table.add_column(heading, justify="left" if heading in words else "right")
    return table
