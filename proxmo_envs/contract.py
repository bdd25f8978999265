"""The contract of a text environment: what its infos must hold, and what it may offer besides.

docs/environments.md states it in words; `proxmo_envs.check_text_env` checks an environment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any, Protocol, runtime_checkable

import numpy as np

from proxmo_envs.errors import ContractError
from proxmo_envs.task import TaskSet

# Keys of an info that may tell success, in the order they are looked for.
SUCCESS_KEYS = ("won", "is_success", "success")
_TEXT = {str}
# What an environment may raise without ending more than its episode: `exit()` is one of these, the
# Ctrl-C of a person is not.
FAILURES = (Exception, SystemExit)


@dataclass(frozen=True, slots=True)
class Rule:
    """What the value of a key of an info must be, and what stands in for a missing one."""

    wanted: str
    holds: Callable[[Any], bool]
    default: str = ""


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except (TypeError, ValueError, OverflowError):
        return False


def _is_share(value: Any) -> bool:
    return _is_finite(value) and 0.0 <= value <= 1.0


def _are_texts(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)


# The keys of an info besides those of success, all optional.
INFO: Mapping[str, Rule] = {
    "task": Rule("a text", _is_text, "the first observation serves as the task"),
    "task_id": Rule("a text", _is_text),
    "task_type": Rule("a text", _is_text, "all tasks are of one type, unknown"),
    "expert_action": Rule("a text", _is_text),
    "hint": Rule("a text", _is_text),
    "admissible_actions": Rule(
        "a list of texts",
        _are_texts,
        "prompts list none, every well-formed action is valid, and the random policy cannot play",
    ),
    "score": Rule("a number from 0 to 1", _is_share, "it is 1 for success, else 0"),
}
_TEXT_KEYS = tuple(key for key, rule in INFO.items() if rule.holds is _is_text)
# An info that holds all of this needs no completion.
COMPLETE = frozenset({"task", "task_id", "task_type", "admissible_actions", "won", "score"})


@runtime_checkable
class ListsTasks(Protocol):
    """The class lists the tasks of a split; `reset(options={"task_id": ID})` starts one of them."""

    @classmethod
    def task_set(cls, split: str, data: str | None, **kwargs: Any) -> TaskSet:
        """Return the tasks of a split."""
        ...


@runtime_checkable
class HasSnapshots(Protocol):
    """Goes back to an earlier state of an episode."""

    def snapshot(self) -> Any:
        """Return a copy of the present state."""
        ...

    def restore(self, snapshot: Any) -> tuple[str, dict[str, Any]]:
        """Go back to a copy; return observation and info."""
        ...


@runtime_checkable
class Plans(Protocol):
    """Knows the shortest way to win, which `proxmo play --expert` shows."""

    def plan(self) -> list[str]:
        """Return the actions that win the episode from its start; ValueError where none do."""
        ...


@dataclass(frozen=True, slots=True)
class Ability:
    """Something an environment may offer: whether it does, and what needs it."""

    name: str
    present: bool
    how: str
    needed_for: str


def abilities_of(creator: Any) -> list[Ability]:
    """Return the optional abilities of an environment class."""
    return [
        Ability(
            "tasks",
            _offers(creator, ListsTasks),
            "a class method `task_set(split=, data=)` and `reset(options={'task_id': ID})`",
            "named tasks and splits",
        ),
        Ability(
            "expert",
            accepts(creator, "expert_action"),
            "an argument `expert_action` that adds info['expert_action']",
            "`proxmo eval --policy expert`, `proxmo play --expert`, `proxmo sft` without --from, "
            "the embedded model",
        ),
        Ability(
            "snapshots",
            _offers(creator, HasSnapshots),
            "methods `snapshot()` and `restore(snapshot)`",
            "search and branching in programs of your own",
        ),
        Ability(
            "plan",
            _offers(creator, Plans),
            "a method `plan()`",
            "the plan that `proxmo play --expert` shows",
        ),
    ]


def _offers(creator: Any, protocol: type) -> bool:
    return isinstance(creator, type) and issubclass(creator, protocol)


def accepts(creator: Any, name: str) -> bool:
    """Return whether a class or function takes an argument of this name."""
    try:
        parameters = signature(creator).parameters
    except (TypeError, ValueError):  # written in C: nothing is known
        return True
    return name in parameters or any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values())


def names(creator: Any, name: str) -> bool:
    """Return whether a class or function lists an argument of this name, not only **kwargs."""
    try:
        return name in signature(creator).parameters
    except (TypeError, ValueError):
        return False


def success_in(info: Mapping[str, Any]) -> bool | None:
    """Return what an info says of success, None where it says nothing.

    Raises:
        ContractError: the value is no truth value. The text "False" would count as true.
    """
    for key in SUCCESS_KEYS:
        if key in info:
            if isinstance(info[key], bool | np.bool_):
                return bool(info[key])
            raise ContractError([expected(f"info[{key!r}]", info[key], "True or False")])
    return None


def breaches(observation: Any, info: Any) -> list[str]:
    """Return what no prompt and no result can be made of."""
    if _is_usual(observation, info):
        return []
    found = []
    if not isinstance(observation, str):
        found.append(expected("the observation", observation, "a text"))
    if not isinstance(info, dict):
        return [*found, expected("info", info, "a dictionary")]
    for key, rule in INFO.items():
        if key in info and not rule.holds(info[key]):
            found.append(expected(f"info[{key!r}]", info[key], rule.wanted))
    try:
        success_in(info)
    except ContractError as error:
        found += error.findings
    return found


def _is_usual(observation: Any, info: Any) -> bool:
    """Return True for most of what keeps the contract, fast: every step of a rollout asks."""
    if type(observation) is not str or type(info) is not dict:
        return False
    actions = info.get("admissible_actions")
    return (
        type(info.get("won")) is bool
        and type(info.get("score")) is float
        and 0.0 <= info["score"] <= 1.0
        and type(actions) is list
        and set(map(type, actions)) <= _TEXT
        and {type(info[key]) for key in _TEXT_KEYS if key in info} <= _TEXT
    )


def reward_breaches(reward: Any) -> list[str]:
    """Return what is wrong with a reward: one nan would make every advantage of its group one."""
    return [] if _is_finite(reward) else [expected("the reward", reward, "a finite number")]


def expected(what: str, value: Any, wanted: str) -> str:
    """Return a finding: what came, and what was expected."""
    return f"{what} is {value!r:.100}, expected {wanted}"
