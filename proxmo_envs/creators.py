"""From an environment id to the class (or function) that makes it."""

from __future__ import annotations

import importlib
from inspect import getattr_static, isfunction
from itertools import pairwise
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator

from proxmo_envs.errors import InvalidOptionError, quote, unknown_env
from proxmo_envs.task import TaskSet


def creator_of(env_id: str) -> tuple[EnvSpec, Any]:
    """Return the registration of an environment and what makes it.

    Args:
        env_id: an id, or MODULE:ID, which imports the module first.

    Raises:
        InvalidOptionError: there is no such environment or module.
    """
    name = import_module_of(env_id, "environment")
    try:
        spec = gymnasium.spec(name)
    except gymnasium.error.UnregisteredEnv as cause:
        raise InvalidOptionError(unknown_env(env_id)) from cause
    creator: Any = spec.entry_point
    return spec, load_env_creator(creator) if isinstance(creator, str) else creator


def import_module_of(reference: str, kind: str) -> str:
    """Import the module of MODULE:ID, if there is one, and return the ID.

    Args:
        reference: ID or MODULE:ID.
        kind: what the ID names, for errors.

    Raises:
        InvalidOptionError: the reference has another form, or the module cannot be imported.
    """
    module, colon, name = reference.rpartition(":")
    if colon and not (name and all(module.split("."))):
        raise InvalidOptionError(
            f"{kind} {quote(reference)} has the wrong form, expected ID or MODULE:ID"
        )
    if module:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as cause:
            raise InvalidOptionError(f"unknown {kind} {quote(reference)}: {cause}") from cause
        except Exception as cause:  # the module's own code runs
            raise InvalidOptionError(
                f"{kind} {quote(reference)}: cannot import {module}: "
                f"{type(cause).__name__}: {cause}"
            ) from cause
    return name


def tasks_of(creator: Any) -> Any:
    """Return the class method `task_set` of an environment, None where it has none.

    Raises:
        InvalidOptionError: it is a method of instances.
    """
    if isinstance(creator, type) and isfunction(getattr_static(creator, "task_set", None)):
        raise InvalidOptionError(
            f"`task_set` of {creator.__name__} is no class method: put @classmethod above it"
        )
    return getattr(creator, "task_set", None)


def check_tasks(tasks: Any, env_id: str) -> TaskSet:
    """Return what `task_set` returned; raises InvalidOptionError unless it lists unique texts."""
    returned = f"the class method `task_set` of {env_id} returns "
    if not isinstance(tasks, TaskSet) or not all(isinstance(one, str) for one in tasks.ids):
        raise InvalidOptionError(
            f"{returned}{quote(tasks)}; expected a TaskSet whose ids are texts"
        )
    # The ids are sorted.
    twice = next((one for one, other in pairwise(tasks.ids) if one == other), None)
    if twice is not None:
        raise InvalidOptionError(f"{returned}the id {quote(twice)} twice; expected unique ids")
    return tasks


def no_data(env_id: str, data: object) -> str:
    """Return the text for data that an environment cannot take."""
    return f"{env_id} takes no argument `data`: leave --data {data} out"
