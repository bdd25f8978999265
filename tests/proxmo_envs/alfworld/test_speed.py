"""The engine is fast: the bounds of the issue, in CPU time of one process."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from proxmo_envs.alfworld.env import ALFWorldEnv
from proxmo_envs.alfworld.generator import generate
from proxmo_envs.alfworld.packed import write_packed


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> ALFWorldEnv:
    """Packed games of official size."""
    path = tmp_path_factory.mktemp("speed") / "games.packed"
    games = [replace(generate("train", k), task_id=f"train/{k}") for k in range(200)]
    write_packed(path, {"train": [(game, "") for game in games]})
    return ALFWorldEnv(data=path)


@pytest.mark.slow
def test_fifty_thousand_steps_a_second_with_their_admissible_lists(env: ALFWorldEnv) -> None:
    rng = np.random.default_rng(0)
    spent = 0.0
    for episode in range(200):
        _, info = env.reset(seed=episode)
        for draw in rng.random(50):
            admissible = info["admissible_actions"]
            command = admissible[int(draw * len(admissible))]
            start = time.process_time()
            *_, info = env.step(command)
            spent += time.process_time() - start
    assert 200 * 50 / spent > 50_000


@pytest.mark.slow
def test_two_thousand_resets_a_second_each_to_another_game(env: ALFWorldEnv) -> None:
    env.reset(seed=0)
    start = time.process_time()
    for _ in range(1000):
        env.reset()
    assert 1000 / (time.process_time() - start) > 2_000
