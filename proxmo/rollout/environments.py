"""Environments for episodes in flight: made by gymnasium id, reused between iterations."""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import Any

import gymnasium

from proxmo.config import EnvConfig
from proxmo.errors import UsageError
from proxmo_envs import ContractError, InvalidOptionError
from proxmo_envs.adapter import TextEnvAdapter
from proxmo_envs.checker import inspect_success
from proxmo_envs.contract import accepts
from proxmo_envs.creators import creator_of, no_data
from proxmo_envs.text_env import TextEnv

logger = logging.getLogger(__name__)


def make_env(config: EnvConfig, **extra: Any) -> TextEnvAdapter:
    """Makes one environment whose infos are complete; `extra` keyword arguments go to it as well.

    Raises:
        UsageError: the id is not registered, or the environment takes no such arguments or breaks
            the contract of environments.
    """
    env = make_plain_env(config, **extra)
    if isinstance(env.unwrapped, TextEnv):
        return TextEnvAdapter(env, success_key="won")
    try:
        return TextEnvAdapter(env, success_key=_success_key(_Key(config)))
    except ContractError as cause:
        env.close()
        raise UsageError(str(cause)) from cause


def make_plain_env(config: EnvConfig, **extra: Any) -> Any:
    """Makes one environment as Gymnasium makes it; raises UsageError as `make_env` does."""
    try:
        _, creator = creator_of(config.id)
    except InvalidOptionError as cause:
        raise UsageError(str(cause)) from cause
    kwargs: dict[str, Any] = {**config.kwargs, **extra}
    if accepts(creator, "split"):
        kwargs = {"split": config.split, **kwargs}
    if accepts(creator, "data"):
        kwargs = {"data": config.data, **kwargs}
    elif config.data is not None:
        raise UsageError(no_data(config.id, config.data))
    if "expert_action" in extra and not accepts(creator, "expert_action"):
        raise UsageError(
            f"{config.id} has no expert, which the embedded model, --policy expert, --expert and "
            "`proxmo sft` without --from need: its class takes no argument `expert_action` "
            "(docs/environments.md says how to add one)"
        )
    if config.max_steps is not None:
        kwargs["max_episode_steps"] = config.max_steps
    try:
        return gymnasium.make(config.id, disable_env_checker=True, **kwargs)
    except TypeError as cause:
        raise UsageError(
            f"{config.id} cannot be made with {kwargs}: {cause}; see env.kwargs"
        ) from cause


class _Key:
    """A configuration as the key of a cache."""

    def __init__(self, config: EnvConfig) -> None:
        self.config = config
        self._text = repr(config)

    def __hash__(self) -> int:
        return hash(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._text == other._text


@lru_cache(maxsize=64)
def _success_key(key: _Key) -> str:
    """Finds out, once per configuration, how an environment tells success; says so in the log."""
    env = make_plain_env(key.config)
    try:
        report, breaches = inspect_success(env)
    finally:
        env.close()
    if breaches:
        raise ContractError(breaches, key.config.id)
    if report.success_key != "won":
        logger.warning("%s: %s", key.config.id, report.success)
    return report.success_key


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
