"""Gymnasium text environments for language agents; needs numpy and gymnasium only.

Importing this package registers the environments: `gymnasium.make("ALFWorld-v0")`. Without the
import, `gymnasium.make("proxmo_envs:ALFWorld-v0")` does both.
"""

from __future__ import annotations

import importlib
from typing import Any

import gymnasium
from gymnasium.envs.registration import load_env_creator

from proxmo_envs.alfworld.description import DESCRIPTION as _ALFWORLD
from proxmo_envs.description import EnvDescription, describe, description_of
from proxmo_envs.errors import InvalidOptionError, ProxmoEnvError, quote, unknown_env
from proxmo_envs.task import Task, TaskSet
from proxmo_envs.text_space import TextSpace
from proxmo_envs.webshop.description import DESCRIPTION as _WEBSHOP

__version__ = "0.1.0"
__all__ = [
    "EnvDescription",
    "InvalidOptionError",
    "ProxmoEnvError",
    "Task",
    "TaskSet",
    "TextSpace",
    "describe",
    "description_of",
    "task_set",
]

gymnasium.register(
    id="ALFWorld-v0",
    entry_point="proxmo_envs.alfworld.env:ALFWorldEnv",
    # As in the original's configuration.
    max_episode_steps=50,
)
gymnasium.register(
    id="WebShop-v0",
    entry_point="proxmo_envs.webshop.env:WebShopEnv",
    # As in the experiments with the original.
    max_episode_steps=15,
)
describe(_ALFWORLD)
describe(_WEBSHOP)


def task_set(env_id: str, split: str = "train", data: str | None = None, **kwargs: Any) -> TaskSet:
    """Return the tasks of a split of a registered environment, without making the environment.

    Works for every environment whose class has a class method `task_set(split=, data=, **kwargs)`;
    the further arguments are those of `gymnasium.make`. Raises InvalidOptionError when the class
    has none or one that returns something else, or there is no such environment.
    """
    module, _, name = env_id.rpartition(":")
    if module:
        importlib.import_module(module)
    try:
        spec = gymnasium.spec(name)
    except gymnasium.error.UnregisteredEnv as cause:
        raise InvalidOptionError(unknown_env(env_id)) from cause
    entry: Any = spec.entry_point
    if isinstance(entry, str):
        entry = load_env_creator(entry)
    tasks = getattr(entry, "task_set", None)
    if tasks is None:
        raise InvalidOptionError(
            f"{env_id} has no tasks to list: its class needs a class method "
            "`task_set(split=, data=, ...)`"
        )
    result = tasks(split=split, data=data, **{**spec.kwargs, **kwargs})
    if not isinstance(result, TaskSet) or not all(isinstance(one, str) for one in result.ids):
        raise InvalidOptionError(
            f"the class method `task_set` of {env_id} returns {quote(result)}; expected a TaskSet "
            "whose ids are texts"
        )
    return result
