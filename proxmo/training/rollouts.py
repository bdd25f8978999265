"""Plays the episodes of each iteration, on demand or during the update before."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain

import numpy as np

from proxmo.agents.language import LanguageAgent
from proxmo.config import Config
from proxmo.distributed import SINGLE, ProcessGroup
from proxmo.errors import RolloutError
from proxmo.rollout.collector import Collector
from proxmo.rollout.environments import EnvPool
from proxmo.rollout.resampling import replace_flat_groups
from proxmo.types import Episode
from proxmo_envs import TaskSet

# Separate the draws of a run by purpose; 2 is the update, 3 the evaluation.
TASKS, ROLLOUT = range(2)


@dataclass(frozen=True, slots=True)
class RolloutResult:
    """The episodes of an iteration, and `rollout/*` metrics."""

    episodes: list[Episode]
    metrics: dict[str, float]


class Rollouts:
    """Plays the episodes of an iteration; equal seeds, weights and tasks give equal episodes.

    Each of several processes plays whole groups, and all get all episodes. The episodes are the
    same for any number of processes above one, because every decision then has its own seed.

    Args:
        config: of the run.
        tasks: to train on.
        pool: of environments.
        agent: plays.
        progress: called with (episodes ended, all episodes) of this process.
        processes: the processes that play together.
    """

    def __init__(
        self,
        config: Config,
        tasks: TaskSet,
        pool: EnvPool,
        agent: LanguageAgent,
        progress: Callable[[int, int], None],
        processes: ProcessGroup = SINGLE,
    ) -> None:
        self.config = config
        # A group of its own, because a thread may play during the update.
        self.processes = processes.new_group()
        self.tasks = tasks
        self.agent = agent
        self.progress = progress
        self.collector = Collector(
            pool,
            agent,
            timeout_s=config.rollout.episode_timeout_s,
            retries=config.rollout.retries,
        )
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="rollout")
        self._pending: Future[RolloutResult] | None = None

    def begin(self, iteration: int) -> None:
        """Starts to play an iteration's episodes in a thread."""
        self._pending = self._beside.submit(self._play, iteration, lambda done, total: None)

    def wait(self) -> None:
        """Returns when no episode is in flight; only then may weights be replaced."""
        if self._pending is not None:
            self._pending.result()

    def get(self, iteration: int) -> RolloutResult:
        """Returns the episodes of an iteration; plays them now unless `begin` did.

        Raises:
            RolloutError: their off-policy lag is more than `rollout.lag` allows.
        """
        pending, self._pending = self._pending, None
        played = self._play(iteration, self.progress) if pending is None else pending.result()
        versions = {s.weight_version for e in played.episodes for s in e.steps}
        lag = iteration - min(versions, default=iteration)
        if lag > self.config.rollout.lag:
            raise RolloutError(
                f"iteration {iteration + 1} holds responses sampled {lag} updates ago, but "
                f"rollout.lag allows {self.config.rollout.lag}: the sampler missed an update"
            )
        return RolloutResult(
            played.episodes, played.metrics | {"rollout/weight_lag_updates": float(lag)}
        )

    def close(self) -> None:
        """Waits for the episodes in flight, and plays no more."""
        self._beside.shutdown(wait=True, cancel_futures=True)

    def _play(self, iteration: int, progress: Callable[[int, int], None]) -> RolloutResult:
        config = self.config.rollout
        rng = np.random.default_rng((self.config.seed, TASKS, iteration))
        seed = (self.config.seed, ROLLOUT, iteration)
        asked_before, replayed_before = self.agent.sampled_tokens, self.collector.replayed

        def play(tasks: int, again: int) -> list[Episode]:
            members = range(config.group_size)
            others = [(g, m) for g in range(tasks) if not self.processes.owns(g) for m in members]
            own = self.collector.play(
                [task.task_id for task in self.tasks.sample(rng, tasks)],
                group_size=config.group_size,
                seed=(*seed, again) if again else seed,
                max_live=config.max_live,
                own_seeds=self.processes.size > 1,
                done=frozenset(others),
                progress=progress,
            )
            parts = self.processes.all_gather(own)
            return sorted(chain.from_iterable(parts), key=lambda e: (e.group, e.member))

        episodes, fresh = replace_flat_groups(play(config.tasks, 0), play, rounds=config.resample)
        kept = sum(len(s.response_ids) for e in episodes for s in e.steps)
        totals = self.processes.all_reduce(
            {
                "sampled": self.agent.sampled_tokens - asked_before,
                "replayed": self.collector.replayed - replayed_before,
            }
        )
        return RolloutResult(
            episodes,
            {
                # Share of the sampled tokens that the iteration's episodes hold.
                "rollout/efficiency": kept / max(totals["sampled"], 1),
                "rollout/replayed_episodes": float(totals["replayed"]),
                "rollout/resampled_groups": float(fresh),
            },
        )
