"""Gymnasium text environments for language agents; needs numpy and gymnasium only.

Importing this package registers the environments: `gymnasium.make("ALFWorld-v0")`. Without the
import, `gymnasium.make("proxmo_envs:ALFWorld-v0")` does both.
"""

from __future__ import annotations

from typing import Any

import gymnasium

from proxmo_envs.alfworld.description import DESCRIPTION as _ALFWORLD
from proxmo_envs.checker import EnvReport, check_text_env
from proxmo_envs.contract import accepts
from proxmo_envs.creators import check_tasks, creator_of, no_data, tasks_of
from proxmo_envs.description import EnvDescription, describe, description_of
from proxmo_envs.errors import ContractError, InvalidOptionError, ProxmoEnvError
from proxmo_envs.task import Task, TaskSet, seed_tasks
from proxmo_envs.text_space import TextSpace
from proxmo_envs.webshop.description import DESCRIPTION as _WEBSHOP

__version__ = "0.1.0"
__all__ = [
    "ContractError",
    "EnvDescription",
    "EnvReport",
    "InvalidOptionError",
    "ProxmoEnvError",
    "Task",
    "TaskSet",
    "TextSpace",
    "check_text_env",
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

    They are what the class method `task_set(split=, data=, **kwargs)` of the environment's class
    lists; the further arguments are those of `gymnasium.make`. Where the class has no such method,
    the tasks are seeds (`proxmo_envs.task.seed_tasks`).

    Raises:
        InvalidOptionError: there is no such environment or split, the environment takes no `data`,
            or its `task_set` is no class method or returns something else.
    """
    spec, creator = creator_of(env_id)
    if data is not None and not accepts(creator, "data"):
        raise InvalidOptionError(no_data(env_id, data))
    tasks = tasks_of(creator)
    if tasks is None:
        return seed_tasks(spec.id, split)
    result = tasks(split=split, data=data, **{**spec.kwargs, **kwargs})
    return check_tasks(result, env_id)
