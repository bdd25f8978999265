"""The shop is fast and small: the bounds of the issue, in CPU time of one process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from proxmo_envs.bench import measure, subject
from proxmo_envs.webshop.env import WebShopEnv
from tests.webshop_server.recorded import data, transcripts


@pytest.mark.slow
def test_fifteen_hundred_steps_a_second_over_the_recorded_sessions(shared: Path) -> None:
    # With their searches and admissible lists; the original does about 30 a second.
    env = WebShopEnv(data(shared, "real"), "test", profile="original")
    episodes = list(transcripts(shared, "real_synthgoals"))
    steps, start = 0, time.process_time()
    for episode in episodes:
        env.reset(options={"goal_index": episode["goal_index"]})
        for step in episode["steps"]:
            env.step(step["action"])
        steps += len(episode["steps"])
    assert steps > 1000
    assert steps / (time.process_time() - start) > 1500


BUNDLED = """
import resource, time
import gymnasium, proxmo_envs
gymnasium.make("WebShop-v0").reset(seed=0)
print(time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


@pytest.mark.slow
def test_the_bundled_shop_opens_in_a_second_and_150_megabytes(repository: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(repository)}
    command = [sys.executable, "-c", BUNDLED]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    seconds, megabytes = map(float, done.stdout.split())
    assert seconds < 1.0 and megabytes < 150


def test_the_bundled_catalogues_are_measured_by_name(tmp_path: Path) -> None:
    sizes = subject("WebShop-v0").sizes(tmp_path)
    assert {"tiny", "small", "default"} <= set(sizes)
    speed = measure("WebShop-v0", "small", sizes["small"], steps=200)
    assert speed.steps_per_second > 0 and speed.actions > 2
