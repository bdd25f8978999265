"""Environments for episodes in flight: made by gymnasium id, reused between iterations."""

from __future__ import annotations

from typing import Any

from proxmo.config import EnvConfig
from proxmo.errors import UsageError


def make_env(config: EnvConfig, **extra: Any) -> Any:
    """Makes one environment; `extra` keyword arguments go to it besides those of the config.

    Raises:
        UsageError: when the id is not registered, or the environment has no such arguments.
    """
    import gymnasium

    import proxmo_envs  # registers the ids

    kwargs: dict[str, Any] = {"split": config.split, "data": config.data, **config.kwargs, **extra}
    if config.max_steps is not None:
        kwargs["max_episode_steps"] = config.max_steps
    try:
        return gymnasium.make(config.id, disable_env_checker=True, **kwargs)
    except gymnasium.error.UnregisteredEnv as cause:
        raise UsageError(proxmo_envs.errors.unknown_env(config.id)) from cause
    except ModuleNotFoundError as cause:
        raise UsageError(f"unknown environment {config.id!r}: {cause}") from cause
    except TypeError as cause:
        raise UsageError(
            f"{config.id} cannot be made with {kwargs}: {cause}; see env.kwargs"
        ) from cause


class EnvPool:
    """Hands out environments of one configuration; one per episode in flight."""

    def __init__(self, config: EnvConfig, **extra: Any) -> None:
        self.config = config
        self._extra = extra
        self._free: list[Any] = []

    def take(self) -> Any:
        """Returns an environment nobody uses; the caller resets it."""
        try:
            return self._free.pop()
        except IndexError:  # asked for and not looked up before: many threads take from here
            return make_env(self.config, **self._extra)

    def give_back(self, env: Any) -> None:
        """Takes back an environment that works; one that raised is closed by its user instead."""
        self._free.append(env)

    def close(self) -> None:
        """Closes every environment that is not in use."""
        while self._free:
            self._free.pop().close()
