"""The shop is fast and small: the bounds of the issue, in CPU time of one process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

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
from pathlib import Path
import gymnasium, proxmo_envs
gymnasium.make("WebShop-v0").reset(seed=0)
# Not `ru_maxrss`, which a child process takes over from its parent.
print(int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_the_bundled_shop_opens_in_150_megabytes(repository: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(repository)}
    command = [sys.executable, "-c", BUNDLED]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert float(done.stdout) < 150
