"""Check an environment against the contract: play a few episodes, report every breach at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np

from proxmo_envs.contract import (
    FAILURES,
    INFO,
    SUCCESS_KEYS,
    Ability,
    abilities_of,
    accepts,
    breaches,
    expected,
    names,
    reward_breaches,
)
from proxmo_envs.creators import check_tasks, tasks_of
from proxmo_envs.errors import ContractError

_STEP = "(observation, reward, terminated, truncated, info)"
# An episode of the check that is longer than this has no end.
_LONGEST = 1_000
# The same before a run, for an environment without a known step limit.
_LONGEST_QUICK = 300


@dataclass(frozen=True, slots=True)
class EnvReport:
    """What `check_text_env` found out about an environment that keeps the contract.

    Attributes:
        env: its id, or the name of its class.
        success: how success is determined, in a sentence.
        success_key: the key of the info that tells it; "" where the reward does.
        defaults: what stands in for what is missing, a sentence each.
        abilities: optional abilities, present or not.
    """

    env: str
    success: str
    success_key: str
    defaults: tuple[str, ...] = ()
    abilities: tuple[Ability, ...] = ()


def check_text_env(env: Any, *, episodes: int = 3, seed: int = 0) -> EnvReport:
    """Play a few episodes with random actions and compare them with the contract.

    Args:
        env: what `gymnasium.make` returned, or an instance of the class.
        episodes: how many to play.
        seed: of the tasks and the actions.

    Raises:
        ContractError: the environment breaks the contract; the error lists every breach.
    """
    check = _Check(env, np.random.default_rng(seed))
    check.play(episodes)
    if check.found:
        raise ContractError(list(check.found), check.name)
    return check.report()


@dataclass(slots=True)
class _Check:
    """The episodes of a check; `found` holds the breaches in order, each once."""

    env: Any
    rng: np.random.Generator
    # Only find out how success is told: play no longer than that takes.
    quick: bool = False
    found: dict[str, None] = field(default_factory=dict)
    # Breaches that a quick check forgives: they may be those of one task, or of a server.
    failures: dict[str, None] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    # Whether an episode has ended, and the breach that one had no end.
    ended: bool = False
    endless: str = ""

    @property
    def name(self) -> str:
        spec = self.env.spec
        return spec.id if spec is not None else type(self.env.unwrapped).__name__

    def play(self, episodes: int) -> None:
        with self._watched_steps():
            self._play(episodes)
        if self.endless and (self.ended or self._limited()):
            self.failures[self.endless] = None
        elif self.endless:
            self._find(self.endless)
        if not self.quick:
            self.found |= self.failures
            # A reset that raises has been found already.
            with suppress(*FAILURES):
                self._compare_resets()
            with suppress(*FAILURES):
                self._ask_expert()

    def _play(self, episodes: int) -> None:
        for number, task_id in enumerate(self._task_ids(episodes)):
            if self._knows_enough():
                return
            try:
                self._episode(number, task_id)
            except FAILURES as error:
                found = f"{type(error).__name__} in an episode of random actions: {error}"
                self.failures[found] = None

    @contextmanager
    def _watched_steps(self) -> Iterator[None]:
        """Look at what the environment itself returns: a wrapper may turn a list into a tuple."""
        bare = self.env.unwrapped
        step = bare.step

        def watched(action: Any) -> Any:
            result = step(action)
            if not isinstance(result, tuple):
                self._find(expected("what step returns", result, _STEP))
            return result

        bare.step = watched
        try:
            yield
        finally:
            del bare.step

    def _limited(self) -> bool:
        spec = self.env.spec
        return spec is not None and spec.max_episode_steps is not None

    def _knows_enough(self) -> bool:
        if not self.quick or not self.seen & {*SUCCESS_KEYS}:
            return False
        return self.ended or self._limited()

    def _task_ids(self, number: int) -> Sequence[str | None]:
        bare = self.env.unwrapped
        if not hasattr(bare, "task_set"):
            return [None] * number
        kwargs = {} if self.env.spec is None else dict(self.env.spec.kwargs)
        kwargs.pop("render_mode", None)
        split = getattr(bare, "split", kwargs.get("split", "train"))
        given = {**kwargs, "split": split, "data": kwargs.get("data")}
        try:
            listed = tasks_of(type(bare)) or bare.task_set
            tasks = listed(**{k: v for k, v in given.items() if accepts(listed, k)})
            if not check_tasks(tasks, self.name).ids:
                raise TypeError(f"task_set returned {tasks!r:.100}")
        except FAILURES as error:
            breach = f"the class method task_set(split={split!r}) gives no TaskSet of texts: "
            self.failures[f"{breach}{error}"] = None
            return [None] * number
        return [tasks.ids[int(i)] for i in self.rng.integers(len(tasks.ids), size=number)]

    def _reset(self, number: int, task_id: str | None) -> tuple[Any, Any]:
        options = None if task_id is None else {"task_id": task_id}
        result = self.env.reset(seed=number, options=options)
        if not isinstance(result, tuple) or len(result) != 2:
            self._find(expected("what reset returns", result, "(observation, info)"))
            return "", {}
        return result[0], result[1]

    def _episode(self, number: int, task_id: str | None) -> None:
        observation, info = self._reset(number, task_id)
        self._look(observation, info)
        came = info.get("task_id") if isinstance(info, dict) else None
        if task_id is not None and came is not None and came != task_id:
            self._find(
                f"reset(options={{'task_id': {task_id!r}}}) started info['task_id'] {came!r}"
            )
        longest = _LONGEST_QUICK if self.quick and not self._limited() else _LONGEST
        for _ in range(longest):
            if self._knows_enough():
                return
            result = self.env.step(self._action(info))
            if not isinstance(result, tuple) or len(result) != 5:
                self._find(expected("what step returns", result, _STEP))
                return
            observation, reward, terminated, truncated, info = result
            self._look(observation, info)
            self._find(*reward_breaches(reward))
            for name, ended in (("terminated", terminated), ("truncated", truncated)):
                if not isinstance(ended, bool | np.bool_):
                    self._find(expected(name, ended, "True or False"))
            if terminated or truncated:
                self.ended = True
                return
        self.endless = (
            f"an episode of random actions had no end after {longest} steps: register the "
            "environment with max_episode_steps, or set env.max_steps"
        )

    def _look(self, observation: Any, info: Any) -> None:
        self._find(*breaches(observation, info))
        if isinstance(info, dict):
            told = {key for key, value in info.items() if value is not None}
            self.seen |= told
            self.missing |= INFO.keys() - told

    def _action(self, info: Any) -> str:
        actions = info.get("admissible_actions") if isinstance(info, dict) else None
        if isinstance(actions, list | tuple) and actions:
            return str(actions[int(self.rng.integers(len(actions)))])
        space = getattr(self.env, "action_space", None)
        if space is None:
            return ""
        action = space.sample()
        if not isinstance(action, str):
            self._find(f"the action space is {space!r:.100}, expected one of texts")
            return ""
        return action

    def _compare_resets(self) -> None:
        task_id = self._task_ids(1)[0]
        first, second = (self._reset(0, task_id)[0] for _ in range(2))
        if first != second:
            self._find(
                "two resets with the same seed and task gave different observations: the episodes "
                "of a group must start from the same state"
            )

    def _ask_expert(self) -> None:
        """Make the environment with an expert, where it takes the argument, and look for it."""
        spec, bare = self.env.spec, self.env.unwrapped
        if spec is None or not names(type(bare), "expert_action"):
            return
        with closing(gymnasium.make(spec, expert_action=True, disable_env_checker=True)) as env:
            task_id = self._task_ids(1)[0]
            _, info = env.reset(seed=0, options=None if task_id is None else {"task_id": task_id})
        if isinstance(info, dict) and "expert_action" not in info:
            self._find(
                "the environment takes the argument `expert_action`, but the info of its reset "
                "holds no 'expert_action'"
            )

    def _find(self, *findings: str) -> None:
        self.found |= dict.fromkeys(findings)

    def report(self) -> EnvReport:
        key = next((key for key in SUCCESS_KEYS if key in self.seen), "")
        if key:
            success = f"success is info[{key!r}]"
        else:
            threshold = None if self.env.spec is None else self.env.spec.reward_threshold
            success = "no info tells success, so it is " + (
                "a positive return when the environment terminates"
                if threshold is None
                else f"a return of at least {threshold:g}, the reward threshold of the registration"
            )
        abilities = tuple(abilities_of(type(self.env.unwrapped)))
        defaults = [
            f"no info[{key!r}]: {rule.default}"
            for key, rule in INFO.items()
            if rule.default and key in self.missing
        ]
        if not abilities[0].present:
            defaults.insert(0, "tasks are seeds: seed-0000, seed-0001, ...")
        return EnvReport(self.name, success, key, tuple(defaults), abilities)


def inspect_success(env: Any) -> tuple[EnvReport, list[str]]:
    """Find out how an environment tells success: play until it does, at most two episodes.

    Without a known step limit it plays until an episode ends, and finds a breach where none does.
    Returns the report and the breaches found on the way. An episode that raises is not one here:
    that may be the fault of one task, and ends one episode of a run.
    """
    check = _Check(env, np.random.default_rng(0), quick=True)
    check.play(2)
    return check.report(), list(check.found)
