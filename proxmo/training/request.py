"""Checks whether a run is possible as configured, before anything is computed or written.

Imports neither torch nor transformers, so that a dry run is quick. Loading finds out later whether
the model exists.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np

import proxmo_envs
from proxmo import credit
from proxmo.config import Config, EnvConfig
from proxmo.errors import UsageError
from proxmo.policies.engines import find_engine
from proxmo.rollout.environments import EnvPool
from proxmo.training.critic import needs_values
from proxmo.training.prompt_embeddings import needs_policy
from proxmo_envs import TaskSet


def check_request(config: Config) -> None:
    """Makes one environment, lists the tasks of both splits, and assigns credit to two steps.

    Raises:
        UsageError: unknown environment, method, option or engine; options that do not fit; a
            split without tasks.
        MissingDependencyError: the method needs a package that is not installed.
        ProxmoEnvError: data or split that the environment does not have.
    """
    credit_options(config)
    if ":" in config.rollout.engine:
        find_engine(config.rollout.engine)
    with closing(EnvPool(config.env)) as pool:
        pool.give_back(pool.take())
    for split in (config.env.split, config.eval.split):
        tasks_of(config.env, split)


def tasks_of(env: EnvConfig, split: str) -> TaskSet:
    """The tasks of a split, of which there is at least one; raises as `check_request` does."""
    tasks = proxmo_envs.task_set(env.id, split, env.data, **env.kwargs)
    if not len(tasks):
        raise UsageError(
            f"split {split!r} of {env.id} has no tasks; choose others with env.split and "
            "eval.split, or another --data"
        )
    return tasks


def credit_options(config: Config) -> dict[str, Any]:
    """The options of the configured method, tried on two rows so that a mistake shows at once."""
    options = {"gamma": config.credit.gamma, **config.credit.options}
    if "omega" in credit.method_options(config.credit.method):
        options["omega"] = config.credit.omega
    tried = options | ({"value": np.zeros(2)} if needs_values(config.credit.method) else {})
    credit.assign(
        config.credit.method,
        group=[0, 0],
        episode=[0, 1],
        step=[0, 0],
        reward=np.array([0.0, 1.0]),
        success=[False, True],
        state=np.eye(2) if needs_policy(options) else ["one place", "another place"],
        **tried,
    )
    return options
