"""A recorded run of one small iteration, as the trainer leaves one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from proxmo import credit
from proxmo.config import Config, CreditConfig
from proxmo.training.run_directory import RunDirectory
from proxmo.types import Batch, Episode, Outcome, Step

# Two tasks of two episodes; the second episode of the record fell out of the world.
PLAYED = [
    (0, Outcome.WON, [("at shelf 1", 0.0), ("at fridge 1", 1.0)]),
    (0, Outcome.ERROR, [("at shelf 1", 0.0)]),
    (0, Outcome.TRUNCATED, [("at shelf 1", -0.1), ("at shelf 1", 0.0), ("at drawer 2", 0.0)]),
    (1, Outcome.WON, [("at shelf 1", 1.0)]),
    (1, Outcome.WON, [("at fridge 1", 1.0)]),
]


def step(index: int, observation: str, reward: float) -> Step:
    return Step(index, observation, (1,), (2,), (-0.5,), "go", f"go {index}", True, "ok", reward, 1)


def episode(member: int, group: int, outcome: Outcome, steps: list[tuple[str, float]]) -> Episode:
    taken = tuple(step(index, *one) for index, one in enumerate(steps))
    return Episode(group, member, f"task-{group}", "pick", "put it", taken, outcome, cause="storm")


def options_of(config: Config) -> dict:
    return (
        credit.credit_options(config.credit)
        if "policy" not in config.credit.options.values()
        else {}
    )


def record(path: Path, config: Config, iterations: int = 1) -> Path:
    """A run directory as the trainer leaves one."""
    episodes = [episode(member, *one) for member, one in enumerate(PLAYED)]
    batch = Batch.from_episodes(episodes)
    options, values = options_of(config), None
    if credit.needs_values(config.credit.method):
        values = options["value"] = np.linspace(0.0, 1.0, len(batch))
    with RunDirectory(path, config, resume=False) as directory:
        directory.create()
        found = credit.assign(
            config.credit.method,
            group=batch.group,
            episode=batch.episode,
            step=batch.index,
            reward=batch.reward,
            success=batch.success,
            state=batch.states,
            truncated=batch.truncated,
            action=batch.actions,
            **options,
        )
        for number in range(1, iterations + 1):
            directory.record_iteration(number, {}, episodes, found, values)
    return path


def with_credit(method: str, **options) -> Config:
    return Config(credit=CreditConfig(method=method, options=options))
