"""From an environment id to the class (or function) that makes it."""

from __future__ import annotations

import importlib
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator

from proxmo_envs.errors import InvalidOptionError, quote, unknown_env


def creator_of(env_id: str) -> tuple[EnvSpec, Any]:
    """Return the registration of an environment and what makes it.

    Args:
        env_id: an id, or MODULE:ID, which imports the module first.

    Raises:
        InvalidOptionError: there is no such environment or module.
    """
    module, _, name = env_id.rpartition(":")
    try:
        if module:
            importlib.import_module(module)
        spec = gymnasium.spec(name)
    except gymnasium.error.UnregisteredEnv as cause:
        raise InvalidOptionError(unknown_env(env_id)) from cause
    except ModuleNotFoundError as cause:
        raise InvalidOptionError(f"unknown environment {quote(env_id)}: {cause}") from cause
    creator: Any = spec.entry_point
    return spec, load_env_creator(creator) if isinstance(creator, str) else creator


def no_data(env_id: str, data: object) -> str:
    """Return the text for data that an environment cannot take."""
    return f"{env_id} takes no argument `data`: leave --data {data} out"
