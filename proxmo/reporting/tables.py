"""Results as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from proxmo.formats import count, interval, percent

if TYPE_CHECKING:
    from proxmo.evaluation import Evaluation, TypeResult
    from proxmo.evaluation.comparison import Comparison, Difference
    from proxmo.training.imitation import Imitated
    from proxmo.training.loop import Run

# How many different causes of errors are listed.
_CAUSES = 5


def table(
    headings: Sequence[str],
    rows: Iterable[Iterable[str]],
    *,
    words: int = 1,
    total: Sequence[str] | None = None,
) -> Table:
    """Lay out rows of cells: the first columns hold words, the others numbers.

    Args:
        headings: of the columns.
        rows: cells as they are shown; brackets in them are no markup.
        words: how many columns are aligned to the left.
        total: a last row, set apart.
    """
    result = Table(box=box.ROUNDED)
    for place, heading in enumerate(headings):
        left = place < words
        result.add_column(heading, justify="left" if left else "right", overflow="fold")
    for cells in rows:
        result.add_row(*map(Text, cells))
    if total is not None:
        result.add_section()
        result.add_row(*map(Text, total), style="bold")
    return result


def evaluation_table(evaluation: Evaluation) -> Table:
    """List the success by task type and in total, each with its 95 % interval."""
    headings = ("task type", "episodes", "wins", "success", "95 % interval")
    rows = ((name, *_cells(one)) for name, one in evaluation.by_task_type.items())
    return table(headings, rows, total=("all", *_cells(evaluation)))


def evaluation_facts(evaluation: Evaluation) -> Table:
    """List what the result was measured on and what else was seen."""
    facts = {
        "environment": f"{evaluation.env_id}, split {evaluation.split}",
        "panel": f"{evaluation.panel}, {evaluation.tasks} tasks, sha256 {evaluation.panel_hash}",
    }
    scored = evaluation.episodes > 0
    facts |= {
        "mean score": f"{evaluation.mean_score:.3f}" if scored else "-",
        "mean length": f"{evaluation.mean_length:.1f} steps" if scored else "-",
        "invalid actions": percent(evaluation.invalid_action_share) if scored else "-",
    }
    if (seeds := evaluation.seeds) is not None:
        facts[f"{len(seeds.success_rates)} seeds"] = (
            f"mean {percent(seeds.mean)} {interval(seeds.low, seeds.high)}, "
            f"standard deviation {100 * seeds.sd:.1f}, "
            + ", ".join(f"seed {s}: {percent(rate)}" for s, rate in seeds.success_rates.items())
        )
    if evaluation.pass_at:
        facts["pass@k"] = ", ".join(f"{k}: {percent(v)}" for k, v in evaluation.pass_at.items())
    if evaluation.success_after:
        facts["success after k tries"] = ", ".join(
            f"{k}: {percent(v)}" for k, v in evaluation.success_after.items()
        )
    if evaluation.response_tokens:
        facts["tokens"] = (
            f"{count(evaluation.prompt_tokens)} read, {count(evaluation.response_tokens)} written"
            + (f", cost {evaluation.cost:.4f}" if evaluation.cost else "")
        )
    if evaluation.overflows:
        facts["overflow"] = (
            f"{evaluation.overflows} episodes ended as lost because a prompt did not fit the token "
            "budget: the model's context, or --prompt-tokens"
        )
    if evaluation.errors:
        commonest = list(evaluation.error_causes.items())[:_CAUSES]
        causes = "; ".join(f"{cause} ({n})" for cause, n in commonest)
        facts["not scored"] = f"{evaluation.errors} episodes ended in an error: {causes}"
    return facts_table(facts)


def comparison_table(comparison: Comparison) -> Table:
    """List both success rates and their difference by task type and in total."""
    headings = ("task type", "tasks", "A", "B", "B - A", "95 % interval")
    rows = ((name, *_difference_cells(one)) for name, one in comparison.by_task_type.items())
    return table(headings, rows, total=("all", *_difference_cells(comparison.success)))


def comparison_facts(comparison: Comparison) -> Table:
    """List what was compared and how sure the difference is."""
    score, p = comparison.score, comparison.p_value
    facts = {
        "A": comparison.first,
        "B": comparison.second,
        "panel": f"{comparison.panel}, sha256 {comparison.panel_hash}",
        "only A won": f"{comparison.only_first} tasks",
        "only B won": f"{comparison.only_second} tasks",
        "McNemar": "not for tasks played several times" if p is None else f"p = {p:.3g}, exact",
        "mean score": (
            f"{score.first:.3f}, {score.second:.3f}, difference {score.difference:+.3f} "
            f"[{score.low:.3f}, {score.high:.3f}]"
        ),
    }
    if comparison.p_value is None:
        facts["only A won"] = f"{comparison.only_first} tasks more often than B"
        facts["only B won"] = f"{comparison.only_second} tasks more often than A"
    if comparison.left_out:
        facts["left out"] = f"{comparison.left_out} tasks that one side could not score"
    return facts_table(facts)


def training_table(run: Run) -> Table:
    """List what a run reached and where it is."""
    facts = {
        "run": str(run.path),
        "iterations": f"{run.iterations_done}, {'done' if run.finished else 'stopped'}",
    }
    return facts_table({**facts, **_successes(run), "checkpoint": str(run.checkpoint)})


def imitation_table(result: Imitated) -> Table:
    """List what was imitated and how well, and where the model is."""
    left_out = f", {count(result.left_out)} left out: too long" if result.left_out else ""
    facts = {
        "imitated": f"{count(result.episodes)} episodes, {count(result.samples)} steps{left_out}, "
        f"{count(result.tokens)} tokens",
        "loss": f"{result.first_loss:.3f} to {result.last_loss:.3f} nats per response token "
        f"in {count(result.optimizer_steps)} optimiser steps",
    }
    return facts_table({**facts, **_successes(result), "checkpoint": str(result.path)})


def _successes(result: Run | Imitated) -> dict[str, str]:
    """Success before and after, as far as it was measured."""
    found = {}
    for label, evaluation in (("before", result.before), ("after", result.after)):
        if evaluation is not None:
            bounds = interval(evaluation.low, evaluation.high)
            found[f"success {label}"] = (
                f"{percent(evaluation.success_rate)} {bounds}, "
                f"{evaluation.episodes} episodes of {evaluation.split}"
            )
    return found


def _cells(result: Evaluation | TypeResult) -> tuple[str, str, str, str]:
    if not result.episodes:
        return "0", "0", "-", "-"
    bounds = interval(result.low, result.high)
    return str(result.episodes), str(result.wins), percent(result.success_rate), bounds


def _difference_cells(one: Difference) -> tuple[str, ...]:
    change = f"{100 * one.difference:+.1f}"
    bounds = interval(one.low, one.high)
    return str(one.tasks), percent(one.first), percent(one.second), change, bounds


def facts_table(facts: Mapping[str, str]) -> Table:
    """Lay out names and what is known of them."""
    result = Table.grid(padding=(0, 2))
    result.add_column(min_width=15)
    # Paths are copied from here: they are folded, never cut.
    result.add_column(overflow="fold")
    for name, text in facts.items():
        # Text, not str: brackets in a path are no markup.
        result.add_row(name, Text(text))
    return result
