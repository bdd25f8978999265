"""`proxmo bench train`: training, its rollout and its memory."""

from __future__ import annotations

from statistics import median
from typing import Any

import click

from proxmo.config_loading import resolve

from .. import options
from ..display import progress, show, show_json
from .measurements import show_measurements


@click.command("train")
@options.text("--model", "Directory or hub id", "tiny", metavar="M")
@options.text("--trl", "Interpreter that has TRL, to measure it, too.", metavar="PYTHON")
@options.count("--tasks", "Tasks per iteration", 8, minimum=2)
@options.count("--group-size", "Episodes each", 8, minimum=2)
@options.count("--iterations", "Iterations timed, the first of them a warm-up", 8, minimum=2)
@options.count("--repeats", "Runs of each", 3)
@options.count("--memory", "Watch the memory over N iterations, too.", minimum=2)
@options.assignments("Set any key of the configuration.")
@options.as_json()
@options.debug
def command(
    trl: str | None,
    repeats: int,
    memory: int | None,
    assignments: tuple[str, ...],
    as_json: bool,
    **flags: Any,
) -> None:
    """Measure useful tokens per second of training, beside TRL's GRPOTrainer.

    Both train the same model on the same prompts, batches and limits, on the CPU, in turn; seconds
    are CPU time. Then one iteration's episodes are played by our loop and by one that generates for
    every episode until the slowest has ended.
    """
    config = resolve([], {"model.device": "cpu", **options.take_keys(flags)}, assignments)
    with progress("proxmo bench train", keep=False) as says:
        says.phase("loading libraries")
        from .training import beside_trl, memory_growth, rollout_efficiency, with_model_directory

        config = with_model_directory(config, says)
        speed = beside_trl(config, trl, repeats=repeats, listener=says)
        loops = rollout_efficiency(config, says)
        growth = None if memory is None else memory_growth(config, memory)
    if as_json:
        show_json({"speed": speed, "rollout": loops, "memory": growth})
        return
    show_measurements([one for one in (speed.ours, speed.theirs) if one is not None])
    if speed.ratios:
        show(f"ratio of tokens per CPU s: {median(speed.ratios):.2f}, the median of {repeats}")
    show_measurements(loops)
    if growth is not None:
        show(
            f"memory: {growth.before / 1e6:.1f} MB after the warm-up, {growth.after / 1e6:.1f} MB "
            f"{growth.iterations} iterations later, {growth.slope / 1e3:+.1f} kB an iteration"
        )
