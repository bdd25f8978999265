"""Episodes as columns, and what importing the library costs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

import numpy as np

from proxmo.types import Batch, Episode, Outcome, Step


def step(index: int, reward: float = 0.0) -> Step:
    return Step(index, f"seen {index}", (1,), (2,), (-0.1,), "up", "up", True, "ok", reward, 0)


def episode(group: int, member: int, rewards: Sequence[float], outcome: Outcome) -> Episode:
    steps = tuple(step(i, reward) for i, reward in enumerate(rewards))
    return Episode(group, member, f"task-{group}", "even", "to 1", steps, outcome)


def test_a_batch_has_one_row_per_step_in_the_order_of_the_episodes():
    won = episode(0, 0, [0.0, 1.0], Outcome.WON)
    lost = episode(0, 1, [0.0], Outcome.LOST)
    other = episode(4, 0, [0.25, 0.0, 0.0], Outcome.TRUNCATED)
    batch = Batch.from_episodes([won, lost, other])
    assert len(batch) == 6
    assert batch.group.tolist() == [0, 0, 0, 4, 4, 4]
    assert batch.episode.tolist() == [0, 0, 1, 2, 2, 2]
    assert batch.index.tolist() == [0, 1, 0, 0, 1, 2]
    assert batch.reward.tolist() == [0.0, 1.0, 0.0, 0.25, 0.0, 0.0]
    assert batch.success.tolist() == [True, True, False, False, False, False]
    assert batch.truncated.tolist() == [False] * 3 + [True] * 3
    assert batch.actions == ["up"] * 6
    assert batch.states == ["seen 0", "seen 1", "seen 0", "seen 0", "seen 1", "seen 2"]


def test_episodes_in_error_or_without_a_step_have_no_rows():
    failed = episode(0, 0, [1.0, 1.0], Outcome.ERROR)
    overflowed = episode(0, 1, [], Outcome.OVERFLOW)
    kept = episode(0, 2, [0.5], Outcome.OVERFLOW)
    batch = Batch.from_episodes([failed, overflowed, kept])
    assert (batch.episode.tolist(), batch.reward.tolist()) == ([0], [0.5])


def test_a_batch_of_nothing_is_empty_and_keeps_its_types():
    batch = Batch.from_episodes([])
    assert len(batch) == 0
    assert (batch.group.dtype, batch.success.dtype) == (np.int64, np.bool_)


def test_the_return_is_the_plain_sum_of_the_rewards():
    assert episode(0, 0, [0.5, -0.25, 1.0], Outcome.LOST).episode_return == 1.25


def test_only_the_environments_word_makes_an_episode_won():
    assert not episode(0, 0, [100.0], Outcome.TRUNCATED).won
    assert episode(0, 0, [0.0], Outcome.WON).won


def test_importing_the_library_imports_neither_torch_nor_transformers():
    code = (
        "import sys, json, proxmo, proxmo.types, proxmo.training.loop, proxmo.evaluation\n"
        "print(json.dumps([m for m in ('torch', 'transformers') if m in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(done.stdout) == []
