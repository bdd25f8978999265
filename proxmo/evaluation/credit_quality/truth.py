"""The true advantage of every step of a few episodes, by Monte Carlo.

A fixed policy plays G episodes of one task. From every state they visit, the policy plays n
continuations; the mean of their discounted returns estimates the value V of the state, under the
step limit that is left. The true advantage of a step is A = r + gamma V' - V, where V' belongs to
the next state and is 0 after the end.

The continuations of a state are halved. Two halves give two independent estimates of A, and their
correlation tells how reliable the estimate is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo.agents.base import Agent, Decision
from proxmo.agents.prompts import Turn
from proxmo.errors import UsageError
from proxmo.rollout.episode import LiveEpisode

# Most continuations in flight: enough to fill the batches of a model.
MOST_LIVE = 256
# The value of the start is shared by all episodes of the task, so it gets more continuations.
START_FACTOR = 4


@dataclass(frozen=True, slots=True)
class Truth:
    """The steps of the episodes of one task, as columns of S rows, sorted by (episode, step).

    Attributes:
        task_id: the task.
        episode: (S,) number of the episode, from 0.
        step: (S,) index of the step in its episode, from 0.
        reward: (S,) reward of the step.
        success: (S,) whether the episode of the step was won.
        truncated: (S,) whether the step limit ended the episode of the step.
        state: S observations before the step.
        action: S actions, as sent to the environment.
        expert: (S,) whether the action is the expert's; None where there is no expert.
        value: (S, 2) value of the state from each half of the continuations.
    """

    task_id: str
    episode: NDArray[np.int64]
    step: NDArray[np.int64]
    reward: NDArray[np.float64]
    success: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    state: tuple[str, ...]
    action: tuple[str, ...]
    expert: NDArray[np.bool_] | None
    value: NDArray[np.float64]

    def advantage(self, gamma: float) -> NDArray[np.float64]:
        """(S, 2) true advantage of each step, from each half of the continuations."""
        following = np.zeros_like(self.value)
        inside = self.episode[1:] == self.episode[:-1]
        following[:-1][inside] = self.value[1:][inside]
        return self.reward[:, None] + gamma * following - self.value


def _step(play: LiveEpisode, decision: Decision) -> tuple[float, bool]:
    """Steps the environment; returns the reward and whether the episode has ended."""
    action = decision.action or ""
    play.history.append(Turn(play.observation, action, decision.response))
    play.observation, reward, terminated, truncated, play.info = play.env.step(action)
    return float(reward), terminated or truncated


@dataclass(slots=True)
class _Moment:
    """A visited state: where continuations start."""

    snapshot: Any
    history: list[Turn]


@dataclass(slots=True)
class _Row:
    episode: int
    step: int
    reward: float
    state: str
    action: str
    expert: bool | None
    moment: _Moment


class Laboratory:
    """Plays one task at a time with a fixed policy.

    Args:
        make_env: makes an environment that has `snapshot` and `restore`, without a step limit.
        agent: the policy.
        step_limit: most steps of an episode.
        gamma: discount factor.
        seed: entropy of every random draw.

    Raises:
        UsageError: the environment has no snapshots.
    """

    def __init__(
        self, make_env: Any, agent: Agent, *, step_limit: int, gamma: float, seed: int
    ) -> None:
        self._make_env = make_env
        self._agent = agent
        self._step_limit = step_limit
        self._gamma = gamma
        self._seed = seed
        self._envs: list[Any] = [make_env()]
        if not hasattr(self._envs[0], "snapshot"):
            raise UsageError(
                f"{type(self._envs[0]).__name__} has no snapshot() and restore(), which "
                "continuations of a visited state need; see docs/environments.md"
            )

    def close(self) -> None:
        """Closes the environments."""
        for env in self._envs:
            env.close()

    def measure(self, task_id: str, number: int, *, episodes: int, continuations: int) -> Truth:
        """Plays a task and estimates the value of every state.

        Args:
            task_id: the task.
            number: of the task, part of the entropy of its draws.
            episodes: G, how many to play.
            continuations: n, of every visited state; even.
        """
        rows: list[_Row] = []
        won, limited = [], []
        for episode in range(episodes):
            played, success, truncated = self._play(task_id, number, episode)
            rows += played
            won.append(success)
            limited.append(truncated)
        value = self._values(rows, number, continuations)
        of_episode = np.array([row.episode for row in rows])
        labels = [row.expert for row in rows]
        known = all(label is not None for label in labels)
        return Truth(
            task_id=task_id,
            episode=of_episode,
            step=np.array([row.step for row in rows]),
            reward=np.array([row.reward for row in rows]),
            success=np.array(won)[of_episode],
            truncated=np.array(limited)[of_episode],
            state=tuple(row.state for row in rows),
            action=tuple(row.action for row in rows),
            expert=np.array(labels, dtype=bool) if known else None,
            value=value,
        )

    def _play(self, task_id: str, number: int, episode: int) -> tuple[list[_Row], bool, bool]:
        env = self._envs[0]
        observation, info = env.reset(seed=number, options={"task_id": task_id})
        play = LiveEpisode(number, episode, task_id, env, observation=observation, info=info)
        rows: list[_Row] = []
        ended = False
        while not ended and len(rows) < self._step_limit:
            moment = _Moment(env.snapshot(), list(play.history))
            state, advised = play.observation, play.info.get("expert_action")
            seed = (self._seed, number, 0, episode, len(rows))
            decision = self._agent.act([play.situation(None)], seed=seed)[0]
            reward, ended = _step(play, decision)
            action = play.history[-1].action
            expert = None if advised is None else action == advised
            rows.append(_Row(episode, len(rows), reward, state, action, expert, moment))
        return rows, bool(play.info.get("won", False)), not ended

    def _values(self, rows: Sequence[_Row], number: int, continuations: int) -> NDArray[np.float64]:
        """(S, 2) value of each row's state, from each half of the continuations."""
        tasks = [(0, k) for k in range(START_FACTOR * continuations)]
        tasks += [(i, k) for i, row in enumerate(rows) if row.step for k in range(continuations)]
        total, count = np.zeros((len(rows), 2)), np.zeros((len(rows), 2))
        for first in range(0, len(tasks), MOST_LIVE):
            part = tasks[first : first + MOST_LIVE]
            seed = (self._seed, number, 1, first)
            returns = self._continue([rows[i].moment for i, _ in part], seed)
            for (i, k), found in zip(part, returns, strict=True):
                total[i, k % 2] += found
                count[i, k % 2] += 1
        value = total / np.maximum(count, 1)
        value[[i for i, row in enumerate(rows) if row.step == 0]] = value[0]
        return value

    def _continue(self, moments: Sequence[_Moment], seed: tuple[int, ...]) -> list[float]:
        """Discounted return of one continuation from each moment."""
        while len(self._envs) < len(moments):
            self._envs.append(self._make_env())
        live: list[tuple[int, LiveEpisode]] = []
        for place, moment in enumerate(moments):
            env, history = self._envs[place], list(moment.history)
            observation, info = env.restore(moment.snapshot)
            play = LiveEpisode(
                0, place, "", env, observation=observation, info=info, history=history
            )
            live.append((place, play))
        returns, tick = [0.0] * len(moments), 0
        while live:
            situations = [play.situation(None) for _, play in live]
            decisions = self._agent.act(situations, seed=(*seed, tick))
            going = []
            for (place, play), decision in zip(live, decisions, strict=True):
                reward, ended = _step(play, decision)
                returns[place] += self._gamma**tick * reward
                if not ended and len(play.history) < self._step_limit:
                    going.append((place, play))
            live, tick = going, tick + 1
        return returns
