"""Episodes in flight: every tick asks the agent once for all of them; ended ones cost nothing.

An environment that raises ends its own episode as an ERROR with its cause; its group goes on with
the members left.
"""

from __future__ import annotations

import logging
import math
import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from proxmo.agents.base import Agent, Decision, RetryingAgent, Situation
from proxmo.agents.prompts import Turn, View
from proxmo.rollout.environments import EnvPool
from proxmo.types import Episode, Outcome, Step

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Live:
    """An episode that has not ended."""

    group: int
    member: int
    task_id: str
    env: Any
    trial: int = 1
    observation: str = ""
    info: dict[str, Any] = field(default_factory=dict)
    history: list[Turn] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def situation(self, seed: Sequence[int] | None) -> Situation:
        own = None
        if seed is not None:
            place = (zlib.crc32(self.task_id.encode()), self.member, self.trial, len(self.steps))
            own = (*seed, *place)
        view = View(
            task=self.info.get("task", ""),
            history=tuple(self.history),
            step=len(self.steps),
            observation=self.observation,
            admissible=tuple(self.info.get("admissible_actions", ())),
        )
        return Situation(view, self.info, own)

    def end(self, outcome: Outcome, cause: str | None = None) -> Episode:
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


class Collector:
    """Plays groups of episodes with one agent.

    Args:
        pool: where environments come from.
        agent: who decides.
        invalid_penalty: subtracted from a step's reward when its action is not valid.
    """

    def __init__(self, pool: EnvPool, agent: Agent, *, invalid_penalty: float = 0.0) -> None:
        self.pool = pool
        self.agent = agent
        self.invalid_penalty = invalid_penalty

    def play(
        self,
        task_ids: Sequence[str],
        *,
        group_size: int = 1,
        seed: Sequence[int],
        max_live: int | None = None,
        own_seeds: bool = False,
        done: Collection[tuple[int, int]] = (),
        on_end: Callable[[Episode], None] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Episode]:
        """Plays every task `group_size` times; the episodes come back by (task position, member).

        By default the decisions of a tick share one generator, which is fast. With `own_seeds` an
        episode is the same in whatever company it is played: with any `max_live`, any other tasks.

        Args:
            task_ids: tasks, in the order that numbers the groups.
            group_size: episodes per task, all from the identical start state.
            seed: entropy of every random draw, those of the environments included; equal seeds,
                weights and tasks give equal episodes.
            max_live: most episodes in flight at once; None plays all together.
            own_seeds: every decision has a seed of its own: of task, member, trial and step.
            done: (task position, member) of what is not to be played.
            on_end: called with each episode as soon as it has ended.
            progress: called with (episodes ended, episodes in all) after each tick.
        """
        waiting = [
            (group, member, task_id, 1)
            for group, task_id in reversed(list(enumerate(task_ids)))
            for member in reversed(range(group_size))
            if (group, member) not in done
        ]
        total = len(waiting)
        live: list[_Live] = []
        ended: list[Episode] = []
        tick = 0
        while waiting or live:
            final: list[Episode] = []
            while waiting and (max_live is None or len(live) < max_live):
                started = self._start(*waiting.pop(), seed)
                if isinstance(started, Episode):
                    final.append(started)
                else:
                    live.append(started)
            now = tuple(seed) if own_seeds else (*seed, tick)
            situations = [e.situation(seed if own_seeds else None) for e in live]
            decisions = self.agent.act(situations, seed=now) if live else []
            results = [self._advance(e, d) for e, d in zip(live, decisions, strict=True)]
            live = [e for e, r in zip(live, results, strict=True) if r is None]
            settled, again = self._settle([r for r in results if r is not None], now)
            final += settled
            waiting += again
            ended += final
            if on_end is not None:
                for episode in final:
                    on_end(episode)
            tick += 1
            if progress is not None:
                progress(len(ended), total)
        return sorted(ended, key=lambda e: (e.group, e.member))

    def _settle(
        self, ended: list[Episode], seed: Sequence[int]
    ) -> tuple[list[Episode], list[tuple[int, int, str, int]]]:
        """Parts the episodes that stand from what an agent that learns from failures replays."""
        if not ended or not isinstance(self.agent, RetryingAgent):
            return ended, []
        settled = list(zip(ended, self.agent.settle(ended, seed=seed), strict=True))
        again = [(e.group, e.member, e.task_id, e.trial + 1) for e, s in settled if s is None]
        return [s for _, s in settled if s is not None], again

    def _start(
        self, group: int, member: int, task_id: str, trial: int, seed: Sequence[int]
    ) -> _Live | Episode:
        episode = _Live(group, member, task_id, env=None, trial=trial)
        # Of the task and not of its place: the members of a group start from the same state, and a
        # task of an evaluation is the same in a panel of any size.
        entropy = np.random.SeedSequence([*seed, zlib.crc32(task_id.encode())])
        try:
            episode.env = self.pool.take()
            episode.observation, episode.info = episode.env.reset(
                seed=int(entropy.generate_state(1)[0]), options={"task_id": task_id}
            )
        except Exception as cause:  # isolation: one broken game must not end the iteration
            return self._fail(episode, cause)
        return episode

    def _advance(self, episode: _Live, decision: Decision) -> Episode | None:
        """Steps one environment; returns the episode when it has ended."""
        if decision.overflow:
            self.pool.give_back(episode.env)
            return episode.end(Outcome.OVERFLOW, "the prompt does not fit its token budget")
        if decision.error is not None:
            self.pool.give_back(episode.env)
            return episode.end(Outcome.ERROR, decision.error)
        try:
            observation, reward, terminated, truncated, info = episode.env.step(
                decision.action or ""
            )
            reward = _finite(reward)
        except Exception as cause:  # isolation of one episode, as above
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
                reward=reward - (0.0 if decision.valid else self.invalid_penalty),
                weight_version=decision.weight_version,
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

    def _fail(self, episode: _Live, cause: Exception) -> Episode:
        logger.warning("episode %s of task %s failed: %r", episode.member, episode.task_id, cause)
        if episode.env is not None:
            try:
                episode.env.close()
            except Exception as second:  # cleanup of what is already broken
                logger.warning("closing its environment failed too: %r", second)
        return episode.end(Outcome.ERROR, f"{type(cause).__name__}: {cause}")


def _finite(reward: Any) -> float:
    """A reward as a number: one nan would make every advantage of its group one."""
    value = float(reward)
    if not math.isfinite(value):
        raise ValueError(f"the environment paid {reward!r}, expected a finite reward")
    return value
