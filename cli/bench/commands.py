"""The command line of the benchmarks: options, and how the results are printed."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import click

from proxmo.config_loading import resolve
from proxmo.errors import UsageError

from .. import options
from ..display import progress, show, show_json, show_table
from ..failures import DONE, FAILED
from ..lazy import CONTEXT, NearNamesGroup
from .credit_quality import command as credit_quality

if TYPE_CHECKING:
    from .alfworld import Beside
    from .env import Speed

# Requests per second of the original's best server, when its recordings were made.
_ORIGINAL_PER_S = 61


def _time(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


# Heading -> how the cell of a measurement is written: a format, or a function.
Columns = Mapping[str, str | Callable[[Any], str]]
_TIMINGS: Columns = {
    "method": "{0.method}",
    "steps": "{0.rows}",
    "time": lambda one: _time(one.seconds),
    "plain dense": lambda one: _time(one.plain_seconds),
    "ratio": "{0.ratio:.1f}",
}
_SCALES: Columns = {
    "states": "{0.rows}",
    "neighbours": "{0.top_k}",
    "time": lambda one: _time(one.seconds),
    "peak memory": "{0.peak_mb:.0f} MB",
    "all pairs would take": "{0.dense_mb:.0f} MB",
    "recall": "{0.recall:.3f}",
}
_SPEEDS: Columns = {
    "size": "{0.size}",
    "actions": "{0.actions:.0f}",
    "steps/s": "{0.steps_per_second:,.0f}",
    "steps/s, made": "{0.made_steps_per_second:,.0f}",
    "resets/s": "{0.resets_per_second:,.0f}",
    "kB a game": lambda one: f"{one.live_bytes / 1e3:.0f}",
}
_TRAINERS: Columns = {
    "training": "{0.trainer}",
    "useful tokens": "{0.tokens:,}",
    "CPU s": "{0.cpu_seconds:.1f}",
    "wall s": "{0.seconds:.1f}",
    "tokens per CPU s": "{0.rate:,.0f}",
}
_LOOPS: Columns = {
    "rollout": "{0.loop}",
    "episodes": "{0.episodes:,}",
    "generated": "{0.generated:,}",
    "useful": "{0.useful:,}",
    "efficiency": lambda one: f"{one.useful / one.generated:.2f}",
    "CPU s": "{0.cpu_seconds:.1f}",
}
_SEARCHES: Columns = {
    "documents": "{0.documents}",
    "build": "{0.build_seconds:.1f} s",
    "peak memory": "{0.peak_mb:.0f} MB",
    "on disk": "{0.disk_mb:.1f} MB",
    "open": "{0.open_ms:.2f} ms",
    "search p50": "{0.p50_ms:.2f} ms",
    "search p99": "{0.p99_ms:.2f} ms",
    "plain p50": "{0.plain_p50_ms:.2f} ms",
    "plain p99": "{0.plain_p99_ms:.2f} ms",
    "ratio": lambda one: f"{one.plain_p50_ms / one.p50_ms:.1f}",
    "same": "{0.same:.0%}",
}


class Sizes(click.ParamType):
    """Whole numbers above 0 with commas between, or none; `1e6` is one too."""

    name = "sizes"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Return the numbers, in the order given."""
        try:
            sizes = tuple(int(float(one)) for one in str(value).split(",") if one)
        except (ValueError, OverflowError):
            sizes = (0,)
        if any(size < 1 for size in sizes):
            self.fail(f"{value!r}; expected numbers like 1000,100000", param, ctx)
        return sizes


@click.group("bench", cls=NearNamesGroup, kind="benchmark", context_settings=CONTEXT)
def command() -> None:
    """Measure the speed of a part, beside what it replaces."""


@command.command("credit", short_help="Credit assignment beside a plain dense version.")
@options.count("--groups", "Tasks", 16)
@options.count("--episodes", "Episodes a task", 8)
@options.count("--steps", "Steps an episode", 50)
@options.count("--repeats", "Runs of each", 5)
@options.text(
    "--sizes",
    'Distinct states compared across the batch, "" for none',
    "1000,10000,100000",
    metavar="N,...",
    type=Sizes(),
)
@options.count("--top-k", "Their neighbours", 64, metavar="K")
@options.as_json()
@options.debug
def credit(repeats: int, sizes: tuple[int, ...], top_k: int, as_json: bool, **shape: int) -> None:
    """Measure credit assignment beside a plain dense version, and its growth with the states.

    The first table has medians of runs made in turn, on observations of 40 words of which half are
    distinct. The second compares every state with the whole batch, each size in its own process.
    """
    import numpy as np

    from .credit import measure_scale, synthetic_batch, time_methods

    with progress("proxmo bench credit", keep=False) as listener:
        batch = synthetic_batch(np.random.default_rng(0), **shape)
        listener.phase("methods", text=f"{len(batch['step'])} steps")
        timings = time_methods(batch, repeats=repeats)
        scales = []
        for size in sizes:
            listener.phase("growth", text=f"{size} states")
            scales.append(measure_scale(size, top_k=top_k))
    if as_json:
        show_json({"methods": timings, "growth": scales})
        return
    _show(timings, _TIMINGS)
    if scales:
        _show(scales, _SCALES)


command.add_command(credit_quality)


@command.command("env", short_help="An environment beside its original, by size of its rooms.")
@options.env(default="ALFWorld-v0")
@options.data("Measure these tasks, too.")
@options.count("--steps", "Steps", 20_000, minimum=100)
@options.count("--games", "Games over which the memory is watched, 0 for none", 10_000, minimum=0)
@options.text(
    "--original", "Interpreter that has the original, to measure it, too.", metavar="PYTHON"
)
@options.count("--tasks", "Tasks played with the original", 6)
@options.as_json()
@options.debug
def env(
    env: str,
    data: str | None,
    steps: int,
    games: int,
    original: str | None,
    tasks: int,
    as_json: bool,
) -> None:
    """Measure steps, resets and memory of an environment, by its size and beside its original.

    Rates are a second of CPU time of one process, list of admissible actions included. The memory
    is watched at the last size, or with --data.
    """
    from . import alfworld
    from .env import measure, sizes

    if original is not None and env != alfworld.ENV:
        raise UsageError(f"--original: there is no original to measure for {env}")
    if original is not None and (data is None or not Path(data).is_dir()):
        raise UsageError("--original needs --data DIR, an official data directory")
    with tempfile.TemporaryDirectory() as folder, progress("proxmo bench env", keep=False) as says:
        says.phase("sizes")
        found = sizes(env, Path(folder)) | ({} if data is None else {"data": {"data": data}})
        speeds: list[Speed] = []
        for size, kwargs in found.items():
            says.phase("measure", text=size)
            last = len(speeds) == len(found) - 1
            speeds.append(measure(env, size, kwargs, steps=steps, games=games if last else 0))
        both = None
        if original is not None and data is not None:
            says.phase("original", text=f"{tasks} tasks")
            both = alfworld.beside(Path(data), original, tasks)
    if as_json:
        show_json({"env": env, "sizes": speeds, "beside": both})
        return
    _show(speeds, _SPEEDS)
    for one in speeds:
        if one.growth_bytes is not None:
            grown = f"{one.growth_bytes / 1e6:.1f} MB"
            show(f"memory grew by {grown} over {one.games:,} games ({one.size})")
    if both is not None:
        _show_original(both)


def _show_original(both: Beside) -> None:
    rates = {
        "steps/s": (both.ours_steps, both.original_steps),
        "resets/s": (both.ours_resets, both.original_resets),
    }
    rows = [
        (name, f"{ours:,.0f}", f"{theirs:,.2f}", f"{ours / theirs:,.0f}")
        for name, (ours, theirs) in rates.items()
    ]
    rows.append(("MB of the process", "", f"{both.original_bytes / 1e6:.0f}", ""))
    show_table((f"{both.tasks} tasks, {both.steps} steps", "ours", "original", "ratio"), rows)


@command.command("train", short_help="The training loop beside TRL's, its rollout, its memory.")
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
def train(
    model: str,
    trl: str | None,
    tasks: int,
    group_size: int,
    iterations: int,
    repeats: int,
    memory: int | None,
    assignments: tuple[str, ...],
    as_json: bool,
) -> None:
    """Measure useful tokens per second of training, beside TRL's GRPOTrainer.

    Both train the same model on the same prompts, batches and limits, on the CPU, in turn; seconds
    are CPU time. Then one iteration's episodes are played by our loop and by one that generates for
    every episode until the slowest has ended.
    """
    flags: dict[str, Any] = {
        "model.name": model,
        "model.device": "cpu",
        "rollout.tasks": tasks,
        "rollout.group_size": group_size,
        "optim.iterations": iterations,
    }
    config = resolve([], flags, assignments)
    with progress("proxmo bench train", keep=False) as says:
        says.phase("loading libraries")
        from .train import beside_trl, memory_growth, rollout_efficiency, with_model_directory

        config = with_model_directory(config, says)
        speed = beside_trl(config, trl, repeats=repeats, listener=says)
        loops = rollout_efficiency(config, says)
        growth = None if memory is None else memory_growth(config, memory)
    if as_json:
        show_json({"speed": speed, "rollout": loops, "memory": growth})
        return
    ratio = f"{median(speed.ratios):.2f}" if speed.ratios else ""
    trainers = [one for one in (speed.ours, speed.theirs) if one is not None]
    _show(trainers, {**_TRAINERS, "ratio": lambda one: ratio if one is speed.ours else ""})
    _show(loops, _LOOPS)
    if growth is not None:
        show(
            f"memory: {growth.before / 1e6:.1f} MB after the warm-up, {growth.after / 1e6:.1f} MB "
            f"{growth.iterations} iterations later, {growth.slope / 1e3:+.1f} kB an iteration"
        )


@command.command("search", short_help="The search of the shop beside a plain one.")
@click.option(
    "--sizes",
    type=Sizes(),
    default="1000,100000",
    metavar="N,...",
    help="Documents  [1000,100000]; 1100000 takes a few minutes and 3 GB",
)
@options.count("--queries", "Searches", 200)
@options.seed("Seed", 0)
@options.as_json()
@options.debug
def search(sizes: tuple[int, ...], queries: int, seed: int, as_json: bool) -> None:
    """Measure the search of the shop on documents of made-up words.

    Each size runs in its own process. The plain way scores every document that has a word of the
    query; both ways answer the same queries in turn and must agree.
    """
    from .search import measure

    found = []
    with progress("proxmo bench search", keep=False) as listener:
        for size in sizes:
            listener.phase("search", text=f"{size} documents")
            found.append(measure(size, queries=queries, seed=seed))
    if as_json:
        show_json(found)
        return
    _show(found, _SEARCHES)


@command.command("webshop-http", short_help="A server of the shop under load.")
@options.count("--sessions", "Shoppers", 200)
@options.number("--seconds", "Duration", 60.0, minimum=1, metavar="S")
@options.count("--workers", "Processes", 2)
@options.choice("--surface", "What they use: the pages of people or the API", ("pages", "api"))
@options.data("As in `proxmo webshop serve`  [bundled]")
@options.text("--difficulty", "Of the bundled data", "default", metavar="D")
@options.seed("Seed", 0)
@options.as_json()
@options.debug
def webshop_http(
    workers: int, data: str | None, difficulty: str, as_json: bool, **load: Any
) -> int:
    """Measure a server of the shop under load: requests a second, times, errors, memory.

    The server is started for it on a free port. The shoppers run in this process and on the same
    machine, and send the next request as soon as the last is answered. Exit code 1: errors.
    """
    from webshop_server.app.serve import Settings

    from .webshop import measure

    settings = Settings(port=0, workers=workers, shop={"data": data, "difficulty": difficulty})
    with progress("proxmo bench webshop-http", keep=False) as listener:
        listener.phase("load", text=f"{load['sessions']} shoppers for {load['seconds']:g} s")
        found = measure(settings, **load)
    if as_json:
        show_json(found)
        return FAILED if found.errors else DONE
    from proxmo.reporting.tables import facts_table

    ratio = found.requests_per_s / _ORIGINAL_PER_S
    show(
        facts_table(
            {
                "shoppers, workers": f"{found.sessions}, {found.workers} ({found.surface})",
                "requests": f"{found.requests:,} in {found.seconds:g} s",
                "requests/s": f"{found.requests_per_s:.0f} ({ratio:.1f} times the original's)",
                "p50, p99": f"{found.p50_ms:.0f} ms, {found.p99_ms:.0f} ms",
                "episodes": f"{found.purchases:,}",
                "errors": json.dumps(found.errors) if found.errors else "none",
                "memory": f"{found.memory_mb:.0f} MB, {found.growth_mb_per_min:+.2f} MB a minute",
            }
        )
    )
    return FAILED if found.errors else DONE


def _show(found: Sequence[object], columns: Columns) -> None:
    """Print a table with a row for each measurement."""
    cells = [
        [form.format(one) if isinstance(form, str) else form(one) for form in columns.values()]
        for one in found
    ]
    show_table(tuple(columns), cells)
