"""One episode: started, advanced by decisions, ended; failures of its environment stay inside."""

from __future__ import annotations

import logging
import math
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from proxmo.agents.base import Decision, Situation, Turn, View
from proxmo.rollout.environments import EnvPool
from proxmo.types import Episode, Outcome, Step
from proxmo_envs import ContractError
from proxmo_envs.contract import FAILURES, breaches, reward_breaches

logger = logging.getLogger(__name__)

T = TypeVar("T")

OVERFLOW_CAUSE = "the prompt does not fit its token budget; raise prompt.max_prompt_tokens"


class EpisodeTimeout(Exception):
    """An episode lasted longer than it may."""


@dataclass(slots=True)
class LiveEpisode:
    """An episode that has not ended."""

    group: int
    member: int
    task_id: str
    env: Any
    trial: int = 1
    # Seconds that its environment may still take; what others take is not counted.
    left_s: float = math.inf
    observation: str = ""
    info: dict[str, Any] = field(default_factory=dict)
    history: list[Turn] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def situation(self, seed: Sequence[int] | None) -> Situation:
        """Returns the view and info; with `seed`, the draws are those of this moment alone."""
        own = None
        if seed is not None:
            place = (zlib.crc32(self.task_id.encode()), self.member, self.trial, len(self.history))
            own = (*seed, *place)
        view = View(
            task=self.info.get("task", ""),
            history=tuple(self.history),
            step=len(self.history),
            observation=self.observation,
            admissible=tuple(self.info.get("admissible_actions") or ()),
        )
        return Situation(view, self.info, own, self.member, self.trial)

    def end(self, outcome: Outcome, cause: str | None = None) -> Episode:
        """The episode as it stands, ended by `outcome`."""
        return Episode(
            group=self.group,
            member=self.member,
            task_id=self.task_id,
            task_type=str(self.info.get("task_type", "unknown")),
            task=str(self.info.get("task", "")),
            steps=tuple(self.steps),
            outcome=outcome,
            score=float(self.info.get("score", 0.0)),
            cause=cause,
            trial=self.trial,
        )


class EpisodeRunner:
    """Starts and advances episodes.

    Args:
        pool: where environments come from.
        timeout_s: seconds an episode's environment may take in all; one that hangs is then left
            behind. None: no limit.
    """

    def __init__(self, pool: EnvPool, *, timeout_s: float | None = None) -> None:
        self.pool = pool
        self.timeout_s = timeout_s

    def start(
        self, group: int, member: int, task_id: str, trial: int, seed: Sequence[int]
    ) -> LiveEpisode | Episode:
        """Resets an environment to a task; an Episode comes back when that fails."""
        episode = LiveEpisode(group, member, task_id, env=None, trial=trial)
        if self.timeout_s is not None:
            episode.left_s = self.timeout_s
        # Of the task and not of its place: the members of a group start from the same state, and a
        # task of an evaluation is the same in a panel of any size.
        entropy = np.random.SeedSequence([*seed, zlib.crc32(task_id.encode())])
        try:
            episode.env = self.pool.take()
            observation, info = self._in_time(
                episode,
                episode.env.reset,
                seed=int(entropy.generate_state(1)[0]),
                options={"task_id": task_id},
            )
            _checked(observation, info)
            episode.observation, episode.info = observation, info
        except FAILURES as cause:  # isolation: one broken game must not end the iteration
            return self._fail(episode, cause)
        return episode

    def advance(self, episode: LiveEpisode, decision: Decision) -> Episode | None:
        """Steps one environment; returns the episode when it has ended."""
        if decision.overflow:
            self.pool.give_back(episode.env)
            return episode.end(Outcome.OVERFLOW, OVERFLOW_CAUSE)
        if decision.error is not None:
            self.pool.give_back(episode.env)
            return episode.end(Outcome.ERROR, decision.error)
        try:
            observation, reward, terminated, truncated, info = self._in_time(
                episode, episode.env.step, decision.action or ""
            )
            _checked(observation, info, reward)
        except FAILURES as cause:  # isolation of one episode, as above
            return self._fail(episode, cause)
        episode.steps.append(
            Step(
                index=len(episode.steps),
                observation=episode.observation,
                prompt_ids=decision.prompt_ids,
                response_ids=decision.response_ids,
                logprobs=decision.logprobs,
                response=decision.response,
                action=decision.action,
                valid=decision.valid,
                reason=decision.reason,
                reward=float(reward),
                weight_version=decision.weight_version,
                counted=decision.counted,
            )
        )
        episode.history.append(Turn(episode.observation, decision.action or "", decision.response))
        episode.observation, episode.info = observation, info
        if not (terminated or truncated):
            return None
        self.pool.give_back(episode.env)
        if info.get("won"):
            return episode.end(Outcome.WON)
        return episode.end(Outcome.LOST if terminated else Outcome.TRUNCATED)

    def _in_time(self, episode: LiveEpisode, call: Callable[..., T], *args: Any, **named: Any) -> T:
        """Calls the environment; when its time is over the call is left to itself in its thread."""
        if self.timeout_s is None:
            return call(*args, **named)
        done: Future[T] = Future()

        def work() -> None:
            try:
                done.set_result(call(*args, **named))
            except BaseException as cause:  # handed over to who waits
                done.set_exception(cause)

        began = time.monotonic()
        threading.Thread(target=work, name=f"env {episode.task_id}", daemon=True).start()
        try:
            return done.result(timeout=max(0.0, episode.left_s))
        except FutureTimeout:
            if done.done():
                raise  # the environment's own
            episode.env = None  # it still hangs in there
            raise EpisodeTimeout(f"no end after {self.timeout_s:g} s") from None
        finally:
            episode.left_s -= time.monotonic() - began

    def _fail(self, episode: LiveEpisode, cause: BaseException) -> Episode:
        logger.warning("episode %s of task %s failed: %r", episode.member, episode.task_id, cause)
        if episode.env is not None:
            try:
                episode.env.close()
            except FAILURES as second:  # cleanup of a broken environment
                logger.warning("closing its environment failed too: %r", second)
        return episode.end(Outcome.ERROR, f"{type(cause).__name__}: {cause}")


def _checked(observation: Any, info: Any, reward: Any = 0.0) -> None:
    """Raises early on values that would end the run in a prompt or an advantage."""
    if found := breaches(observation, info) + reward_breaches(reward):
        raise ContractError(found)
