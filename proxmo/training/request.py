"""Checks whether a run is possible as configured, before anything is computed or written.

Imports neither torch nor transformers, so that a dry run is quick. Loading finds out later whether
the model exists.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

import proxmo_envs
from proxmo.config import Config, EnvConfig
from proxmo.config_loading import EMBEDDED_MODEL
from proxmo.credit import credit_options
from proxmo.errors import UnknownNameError, UsageError
from proxmo.policies.engines import find_engine
from proxmo.rollout.environments import EnvPool
from proxmo_envs import TaskSet


def check_request(config: Config) -> dict[str, Any]:
    """Makes one environment, lists the tasks of both splits, and assigns credit to two steps.

    Returns:
        The options of the credit method.

    Raises:
        UsageError: unknown environment, method, option or engine; options that do not fit; a
            split without tasks; the embedded model where there is no expert.
        MissingDependencyError: the method needs a package that is not installed.
        ProxmoEnvError: data or split that the environment does not have.
    """
    options = credit_options(config.credit)
    if ":" in config.rollout.engine:
        find_engine(config.rollout.engine)
    # The embedded model imitates an expert before it is trained.
    needed = {"expert_action": True} if config.model.name == EMBEDDED_MODEL else {}
    with closing(EnvPool(config.env, **needed)) as pool:
        pool.give_back(pool.take())
    known = proxmo_envs.description_of(config.env.id).splits
    for key, split in (("env.split", config.env.split), ("eval.split", config.eval.split)):
        if known and config.env.data is None and split not in known:
            raise UnknownNameError(f"{key} of {config.env.id}", split, known)
        tasks_of(config.env, split)
    return options


def tasks_of(env: EnvConfig, split: str) -> TaskSet:
    """The tasks of a split, of which there is at least one; raises as `check_request` does."""
    tasks = proxmo_envs.task_set(env.id, split, env.data, **env.kwargs)
    if not len(tasks):
        raise UsageError(
            f"split {split!r} of {env.id} has no tasks; choose others with env.split and "
            "eval.split, or another --data"
        )
    return tasks
