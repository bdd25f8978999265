"""`proxmo bench credit-quality`: how close each method's advantages are to the true ones."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import options
from ..display import progress, show, show_json, show_table
from ..play import assignment

if TYPE_CHECKING:
    from proxmo.evaluation.credit_quality import Comparison, Score

_HEADINGS = ("method", "cosine", "95 % interval", "AUC", "all steps")


@click.command("credit-quality")
@options.env(default="ALFWorld-v0")
@options.data()
@options.text("--split", "Tasks to draw from", "train", metavar="S")
@options.assignments("Argument of the environment, for example difficulty=tiny.", "A=B")
@options.count("--max-steps", "Most steps of an episode  [the environment's own]")
@options.count("--tasks", "Tasks", 48, minimum=2)
@options.count("--group-size", "Episodes of each task", 8, minimum=2)
@options.number("--noise", "Mean share of random actions", 0.65, minimum=0, maximum=1)
@options.path("--checkpoint", "The policy is this model instead of the noisy expert.")
@options.count("--continuations", "Continuations of each visited state", 32, minimum=2)
@options.text("--methods", "Methods, with options in brackets", metavar="M,...", name="names")
@options.text(
    "--against", "Methods to take differences to  [gigpo, proxmo if named]", metavar="M,..."
)
@click.option("--limit-ends", is_flag=True, help="Tell methods that the step limit is a real end.")
@options.seed("Seed", 0)
@options.count("--workers", "Processes  [one per core]")
@options.path("--out", "Keep what is measured; the same command then goes on there.")
@options.path("--plot", "Draw the scores, too (needs matplotlib).", metavar="FILE.svg")
@options.as_json()
@options.debug
def command(
    env: str,
    data: str | None,
    split: str,
    assignments: tuple[str, ...],
    max_steps: int | None,
    names: str | None,
    against: str | None,
    limit_ends: bool,
    checkpoint: Path | None,
    workers: int | None,
    out: Path | None,
    plot: Path | None,
    as_json: bool,
    **sizes: Any,
) -> None:
    """Compare credit methods with the true advantages of a fixed policy, by Monte Carlo.

    The score is the cosine on the steps that do not win, corrected for the noise of the truth:
    1 is perfect, 0 is chance. docs/credit-quality.md explains it. An example of --methods:
    gigpo,proxmo[omega=10],proxmo[tau=0.2,scope=batch].
    """
    from proxmo.config import EnvConfig
    from proxmo.evaluation.credit_quality import (
        Settings,
        check_methods,
        compare,
        measure,
        split_names,
    )

    methods = split_names(names)
    usual = [name for name in methods if name in ("gigpo", "proxmo")]
    others = usual if against is None else split_names(against)
    check_methods(methods, others)
    draw = None if plot is None else _plotter(plot)
    world = EnvConfig(
        id=env,
        data=data,
        split=split,
        max_steps=max_steps,
        kwargs=dict(map(assignment, assignments)),
    )
    policy = None if checkpoint is None else str(checkpoint)
    settings = Settings(world, checkpoint=policy, **sizes)
    folder: Any = nullcontext(out) if out else tempfile.TemporaryDirectory()
    with folder as place, progress("proxmo bench credit-quality", keep=False) as listener:
        truths = measure(
            settings,
            Path(place),
            workers=workers or os.cpu_count() or 1,
            progress=lambda done, total: listener.phase("tasks", done=done, total=total),
        )
        listener.phase("methods")
        found = compare(
            truths,
            methods,
            gamma=settings.gamma,
            against=others,
            limit_ends=limit_ends,
            seed=settings.seed,
        )
    if draw is not None:
        draw(found)
    if as_json:
        show_json({**asdict(found), "settings": settings.to_json()})
        return
    _print(found, len(truths))


def _scores(found: Comparison) -> dict[str, Score]:
    return {**found.trivial, **found.methods, "oracle: return - true value": found.oracle}


def _print(found: Comparison, tasks: int) -> None:
    rows = [
        (
            name,
            f"{score.cosine:.3f}",
            f"[{score.low:.3f}, {score.high:.3f}]",
            "-" if score.auc is None else f"{score.auc:.3f}",
            f"{score.all_steps:.3f}",
        )
        for name, score in _scores(found).items()
    ]
    show_table(_HEADINGS, rows)
    differences = [
        (f"{name} - {other}", f"{mean:+.3f}", f"[{low:+.3f}, {high:+.3f}]")
        for name, score in found.methods.items()
        for other, (mean, low, high) in score.differences.items()
    ]
    if differences:
        show_table(("difference, paired over tasks", "cosine", "95 % interval"), differences)
    show(
        f"{found.steps:,} steps of {tasks} tasks; the policy wins {found.success:.0%}; reliability "
        f"of the truth {found.reliability:.2f}; winning steps hold {found.winning_share:.0%} of "
        "the sum of squared advantages and are left out, but for the last column"
    )


def _plotter(path: Path) -> Callable[[Comparison], None]:
    """Return what draws the scores to a file, once it is sure that it can.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        UsageError: there is no such directory or format.
    """
    from proxmo.errors import MissingDependencyError, UsageError

    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError("--plot needs matplotlib: pip install matplotlib") from error
    formats = Figure().canvas.get_supported_filetypes()
    if path.suffix[1:] not in formats or not path.absolute().parent.is_dir():
        raise UsageError(f"--plot {path}: expected a file in a directory, such as scores.svg")
    return partial(_draw, path=path)


def _draw(found: Comparison, *, path: Path) -> None:
    """Draw the scores as dots with their intervals."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    scores = list(_scores(found).items())[::-1]
    figure = Figure(figsize=(7, 0.4 * len(scores) + 1), layout="constrained")
    axes = figure.subplots()
    for place, (name, score) in enumerate(scores):
        colour = "tab:blue" if name in found.methods else "tab:gray"
        axes.plot([score.low, score.high], [place, place], color=colour)
        axes.plot(score.cosine, place, "o", color=colour)
    axes.set_yticks(range(len(scores)), [name for name, _ in scores])
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlabel("cosine with the true advantages (95 % interval)")
    # Text stays text: smaller, and it can be searched.
    with rc_context({"svg.fonttype": "none"}):
        figure.savefig(path)
