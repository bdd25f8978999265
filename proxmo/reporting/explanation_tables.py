"""Explanations of recorded credit as tables."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from proxmo.formats import percent
from proxmo.reporting.explanations import Overview, StepReport
from proxmo.reporting.tables import facts_table, table

# Longest observation of a table; a step's own is shown whole.
_BRIEF = 70
# A smaller weight would be shown as 0.0000.
_LEAST_WEIGHT = 5e-5
# Columns of words; all others hold numbers and are aligned on the right.
_WORDS = {"task id", "task", "action", "observation", "first seen", "method"}


def overview_tables(overview: Overview) -> Iterator[RenderableType]:
    """Yields the credit of an iteration: facts, groups, the steps furthest from their baseline."""
    facts = {"iteration": str(overview.iteration), "method": _method(overview)}
    values = {name.removeprefix("credit/"): one for name, one in overview.diagnostics.items()}
    # The groups below show the success rates one by one.
    facts |= {
        name: f"{one:.4g}" for name, one in values.items() if not name.startswith("success_rate_")
    }
    yield _facts(facts, overview)
    groups = (
        {
            "group": str(group.group),
            "episodes": f"{group.first_episode}-{group.last_episode}",
            "won": str(group.wins),
            "steps": str(group.steps),
            "mean return": f"{group.return_mean:.3f}",
            "w won": _weight(group.modulation_won),
            "w lost": _weight(group.modulation_lost),
            "task id": group.task_id,
            "task": _brief(group.task),
        }
        for group in overview.groups
    )
    yield from _table("Groups", groups)
    largest = (
        {
            "episode": str(step.episode),
            "step": str(step.step),
            "return": f"{step.step_return:.3f}",
            "A step": f"{step.step_advantage:+.3f}",
            "A": f"{step.advantage:+.3f}",
            "action": _brief(step.action),
            "observation": _brief(step.observation),
        }
        for step in overview.largest
    )
    if overview.largest:
        yield from _table("Steps furthest from their baseline", largest)


def step_tables(report: StepReport, *, neighbours: int) -> Iterator[RenderableType]:
    """Yields the reasons of an advantage: facts, neighbours, the advantage by other methods."""
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
    facts |= {
        "A episode": f"{report.episode_advantage:+.4f}{weighted}",
        "A step": f"{report.step_advantage:+.4f}",
        "A": f"{report.advantage:+.4f} = A episode + {report.omega:g} A step",
    }
    yield _facts(facts, report)
    heavy = [one for one in report.neighbours if one.weight >= _LEAST_WEIGHT][:neighbours]
    rows = (
        {
            "similarity": f"{one.similarity:.3f}",
            "weight": f"{one.weight:.4f}",
            "mean return": f"{one.step_return:.3f}",
            "steps": str(one.count),
            "first seen": f"episode {one.episode}, step {one.step}",
            "observation": _brief(one.text),
        }
        for one in heavy
    )
    if report.neighbours:
        title = f"Baseline from {len(report.neighbours)} states, {len(heavy)} shown"
        yield from _table(title, rows)
    ranked = sorted(report.by_method.items(), key=lambda item: -item[1])
    values = {name: f"{value:+.3f}" for name, value in ranked} | report.left_out
    if values:
        others = ({"method": name, "A": value} for name, value in values.items())
        yield from _table("By method, default options", others)


def _method(explained: Overview | StepReport) -> str:
    options = ", ".join(f"{name} {value}" for name, value in explained.options.items())
    return f"{explained.method} ({options})"


def _weight(modulation: float | None) -> str:
    return "-" if modulation is None else f"{modulation:.4f}"


def _brief(text: str | None) -> str:
    return textwrap.shorten(text or "-", _BRIEF, placeholder=" ...")


def _facts(facts: dict[str, str], explained: Overview | StepReport) -> Table:
    notes = {"note": "; ".join(explained.notes)} if explained.notes else {}
    # Blank lines of an observation would tear the column apart.
    return facts_table({name: " ".join(text.split()) for name, text in (facts | notes).items()})


def _table(title: str, rows: Iterable[dict[str, str]]) -> Iterator[RenderableType]:
    """Yields the title on a line of its own, as rich would break it to the table's width."""
    found = list(rows)
    result = table([*found[0]] if found else [], (row.values() for row in found))
    for column in result.columns:
        column.justify = "left" if column.header in _WORDS else "right"
    yield Text(title, style="italic")
    yield result
