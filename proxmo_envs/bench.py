"""How fast an environment is, how that grows with its size, and how the original compares.

    from proxmo_envs.bench import measure, subject

What belongs to one environment (which sizes there are, how its original is run) is its `Subject`,
found by id in `SUBJECTS`. Times are CPU seconds of one process.
"""

from __future__ import annotations

import gc
import os
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import gymnasium
from gymnasium.envs.registration import load_env_creator

from proxmo_envs.errors import InvalidOptionError, unknown

# To add an environment, write its Subject and name it here.
SUBJECTS: Final = {
    "ALFWorld-v0": "proxmo_envs.alfworld.bench:SUBJECT",
    "WebShop-v0": "proxmo_envs.webshop.bench:SUBJECT",
}

_EPISODE_STEPS: Final = 50
_LIVE_GAMES: Final = 20
# Games before the memory is first looked at: by then caches are full.
_WARM_GAMES: Final = 1_000


@dataclass(frozen=True, slots=True)
class Speed:
    """What one size of an environment costs.

    Attributes:
        size: its name.
        actions: mean number of admissible actions.
        steps_per_second: of the environment alone, list of admissible actions included.
        made_steps_per_second: through the wrappers of `gymnasium.make`.
        resets_per_second: a new task each.
        live_bytes: what one more game in play takes.
        growth_bytes: by how much the process grew over `games` resets; None where not measured.
        games: resets over which the growth was measured.
    """

    size: str
    actions: float
    steps_per_second: float
    made_steps_per_second: float
    resets_per_second: float
    live_bytes: float
    growth_bytes: int | None
    games: int


@dataclass(frozen=True, slots=True)
class Beside:
    """Our engine and the original on the same tasks and commands; all answers were equal.

    Rates are a second of CPU time; memory is the peak of the original's process.
    """

    tasks: int
    steps: int
    ours_steps: float
    original_steps: float
    ours_resets: float
    original_resets: float
    original_bytes: int


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured of one environment.

    Attributes:
        sizes: gets a scratch folder; returns by name the arguments of `gymnasium.make` of each
            size, smallest first.
        beside: plays the same tasks with the original; gets the directory of its data, the
            interpreter that has the original, and the number of tasks. None where there is no such
            thing.
    """

    sizes: Callable[[Path], Mapping[str, dict[str, Any]]]
    beside: Callable[[Path, str, int], Beside] | None = None


def subject(env_id: str) -> Subject:
    """Return what is measured of an environment; InvalidOptionError for one without a Subject."""
    if env_id not in SUBJECTS:
        raise InvalidOptionError(unknown("environment to measure", env_id, SUBJECTS))
    found: Any = load_env_creator(SUBJECTS[env_id])
    assert isinstance(found, Subject)
    return found


def measure(
    env_id: str, size: str, kwargs: Mapping[str, Any], *, steps: int = 20_000, games: int = 0
) -> Speed:
    """Measure one size of an environment, with random admissible actions.

    Args:
        env_id: gymnasium id.
        size: what to call it.
        kwargs: arguments of `gymnasium.make`.
        steps: how many to time.
        games: resets over which the growth of the process is watched; 0 leaves that out.
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
        # What is won or bought is over: steps after it would cost next to nothing.
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
            before = _resident_bytes()
        env.reset()
        env.step(env.action_space.sample())
    gc.collect()
    return _resident_bytes() - before if before else None


def _resident_bytes() -> int:
    """Return the resident size of this process; 0 where the system does not say (not Linux)."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _live_bytes(env_id: str, kwargs: Mapping[str, Any]) -> float:
    """Return what Python holds for one more game in play, on average."""

    def playing(seed: int) -> Any:
        env: Any = gymnasium.make(env_id, disable_env_checker=True, **kwargs)
        env.reset(seed=seed)
        for _ in range(_EPISODE_STEPS // 2):
            env.step(env.action_space.sample())
        return env

    # What all games share (data, caches of modules) is there after the first ones.
    first = [playing(seed) for seed in range(_LIVE_GAMES)]
    gc.collect()
    tracemalloc.start()
    games: Sequence[Any] = [playing(seed) for seed in range(_LIVE_GAMES)]
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del first
    return held / len(games)
