"""`proxmo bench env`: how fast an environment is, how that grows with its size, its original.

Times are CPU seconds of one process.
"""

from __future__ import annotations

import gc
import tempfile
import time
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import click
import gymnasium

from proxmo.errors import UnknownNameError, UsageError
from webshop_server.data import bundled

from .. import options
from ..display import progress, show, show_json
from . import alfworld
from .measurements import Column, show_measurements
from .processes import resident_bytes

_SHOP: Final = "WebShop-v0"
_EPISODE_STEPS: Final = 50
_LIVE_GAMES: Final = 20
# Games before the memory is first measured: by then caches are full.
_WARM_GAMES: Final = 1_000


@dataclass(frozen=True, slots=True)
class Speed:
    """The costs of one size of an environment, list of admissible actions included."""

    size: Annotated[str, Column("size")]
    # Mean number of admissible ones.
    actions: Annotated[float, Column("actions", "{:.0f}")]
    steps_per_second: Annotated[float, Column("steps/s", "{:,.0f}")]
    # Through the wrappers of `gymnasium.make`.
    made_steps_per_second: Annotated[float, Column("steps/s, made", "{:,.0f}")]
    # Each to a new task.
    resets_per_second: Annotated[float, Column("resets/s", "{:,.0f}")]
    # Memory that one more game in play takes.
    live_bytes: Annotated[float, Column("kB a game", lambda size: f"{size / 1e3:.0f}")]
    # Growth of the process over `games` resets; None where not measured.
    growth_bytes: int | None
    games: int


@click.command("env")
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
def command(
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
            watched = games if len(speeds) == len(found) - 1 else 0
            speeds.append(measure(env, size, kwargs, steps=steps, games=watched))
        both = None
        if original is not None and data is not None:
            says.phase("original", text=f"{tasks} tasks")
            both = alfworld.beside(Path(data), original, tasks)
    if as_json:
        show_json({"env": env, "sizes": speeds, "beside": both})
        return
    show_measurements(speeds)
    if (grown := speeds[-1].growth_bytes) is not None:
        show(f"memory grew by {grown / 1e6:.1f} MB over {games:,} games ({speeds[-1].size})")
    if both is not None:
        both.show()


def sizes(env_id: str, folder: Path) -> dict[str, dict[str, Any]]:
    """Return the arguments of `gymnasium.make` for each size of an environment, smallest first.

    Args:
        env_id: gymnasium id.
        folder: where tasks may be written.

    Raises:
        UnknownNameError: the sizes of the environment are not known.
    """
    if env_id == alfworld.ENV:
        return alfworld.sizes(folder)
    if env_id == _SHOP:
        return {size: {"difficulty": size} for size in bundled.DIFFICULTIES}
    raise UnknownNameError("environment to measure", env_id, (alfworld.ENV, _SHOP))


def measure(
    env_id: str, size: str, kwargs: Mapping[str, Any], *, steps: int = 20_000, games: int = 0
) -> Speed:
    """Measure one size of an environment, with random admissible actions.

    Args:
        env_id: gymnasium id.
        size: its name in the result.
        kwargs: arguments of `gymnasium.make`.
        steps: how many to time.
        games: resets over which the growth of the process is watched, or 0.
    """
    made = gymnasium.make(env_id, disable_env_checker=True, **kwargs)
    rate, actions = _steps_per_second(made.unwrapped, steps)
    made_rate, _ = _steps_per_second(made, steps)
    resets = max(1, min(2_000, steps // 10))
    start = time.process_time()
    for _ in range(resets):
        made.unwrapped.reset()
    reset_rate = resets / (time.process_time() - start)
    growth = _growth(made.unwrapped, games) if games else None
    made.close()
    live = _live_bytes(env_id, kwargs)
    return Speed(size, actions, rate, made_rate, reset_rate, live, growth, games)


def _steps_per_second(env: Any, steps: int) -> tuple[float, float]:
    """Return the rate of steps and the mean number of admissible actions."""
    spent, actions, ended = 0.0, 0, False
    env.action_space.seed(0)
    for step in range(steps):
        # Steps after the end of a task would cost next to nothing.
        if ended or step % _EPISODE_STEPS == 0:
            env.reset(seed=step)
        action = env.action_space.sample()
        actions += len(env.action_space.choices)
        start = time.process_time()
        _, _, terminated, truncated, _ = env.step(action)
        spent += time.process_time() - start
        ended = terminated or truncated
    return steps / spent, actions / steps


def _growth(env: Any, games: int) -> int | None:
    """Return by how many bytes the process grows over resets, a step after each."""
    before = 0
    for game in range(_WARM_GAMES + games):
        if game == _WARM_GAMES:
            gc.collect()
            before = resident_bytes()
        env.reset()
        env.step(env.action_space.sample())
    gc.collect()
    return resident_bytes() - before if before else None


def _live_bytes(env_id: str, kwargs: Mapping[str, Any]) -> float:
    """Return the memory that Python allocates for one more game in play, on average."""

    def playing(seed: int) -> Any:
        env: Any = gymnasium.make(env_id, disable_env_checker=True, **kwargs)
        env.reset(seed=seed)
        for _ in range(_EPISODE_STEPS // 2):
            env.step(env.action_space.sample())
        return env

    # The first games load all that games share: data, caches of modules.
    first = [playing(seed) for seed in range(_LIVE_GAMES)]
    gc.collect()
    tracemalloc.start()
    games = [playing(seed) for seed in range(_LIVE_GAMES)]
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del first
    return held / len(games)
