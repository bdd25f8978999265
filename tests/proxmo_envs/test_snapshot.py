"""Snapshots of both worlds: what can be restored where."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest

import proxmo_envs  # noqa: F401
from proxmo_envs.errors import InvalidOptionError


@pytest.mark.parametrize(
    ("world", "other"), [("ALFWorld-v0", "WebShop-v0"), ("WebShop-v0", "ALFWorld-v0")]
)
def test_what_is_no_snapshot_of_this_world_is_refused_and_changes_nothing(
    world: str, other: str
) -> None:
    env: Any = gymnasium.make(world).unwrapped
    stranger: Any = gymnasium.make(other).unwrapped
    _, info = env.reset(seed=0)
    stranger.reset(seed=0)
    for wrong in (None, "moment", stranger.snapshot()):
        with pytest.raises(InvalidOptionError, match=r"restore takes what snapshot\(\)"):
            env.restore(wrong)
    assert env.step("look")[-1]["task_id"] == info["task_id"]
