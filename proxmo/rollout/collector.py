"""Episodes in flight: in step with each other for a policy that batches, else each on its own.

An ended episode costs nothing more. One whose environment raises or hangs ends as an ERROR with its
cause, is played again as often as `retries` says, and is then missing: its group goes on with the
members left.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from proxmo.agents.base import Agent, RetryingAgent
from proxmo.rollout.environments import EnvPool
from proxmo.rollout.episode import EpisodeRunner, LiveEpisode
from proxmo.types import Episode, Outcome

T = TypeVar("T")

# Most threads, and so episodes, where the policy answers one by one and nobody sets a limit.
MOST_CONCURRENT = 1024


@dataclass(frozen=True, slots=True)
class _Place:
    """An episode that is to be played."""

    group: int
    member: int
    task_id: str
    trial: int = 1
    attempt: int = 1


class Collector:
    """Plays groups of episodes with one agent.

    Args:
        pool: where environments come from.
        agent: who decides; one whose `concurrent` is true is asked from many threads at once, and
            told to `abandon` what is pending, if it can, when the play breaks off.
        timeout_s: seconds an episode's environment may take in all; None: no limit.
        retries: how often an episode that ended in an ERROR is played again.
    """

    def __init__(
        self,
        pool: EnvPool,
        agent: Agent,
        *,
        timeout_s: float | None = None,
        retries: int = 0,
    ) -> None:
        self.agent = agent
        self.retries = retries
        # Failed episodes that were played again, so far.
        self.replayed = 0
        self.runner = EpisodeRunner(pool, timeout_s=timeout_s)

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
        Episodes that advance on their own always have seeds of their own.

        Args:
            task_ids: tasks, in the order that numbers the groups.
            group_size: episodes per task, all from the identical start state.
            seed: entropy of every random draw, those of the environments included; equal seeds,
                weights and tasks give equal episodes.
            max_live: most episodes in flight at once; None plays all together.
            own_seeds: every decision has a seed of its own: of task, member, trial and step.
            done: (task position, member) of episodes that are not played.
            on_end: called with each episode as soon as it has ended.
            progress: called with (episodes ended, episodes in all) whenever some have ended.
        """
        places = [
            _Place(group, member, task_id)
            for group, task_id in enumerate(task_ids)
            for member in range(group_size)
            if (group, member) not in done
        ]
        if getattr(self.agent, "concurrent", False):
            rounds = self._on_their_own(places, tuple(seed), max_live)
        else:
            rounds = self._in_step(places, tuple(seed), max_live, own_seeds)
        ended: list[Episode] = []
        for final in rounds:
            ended += final
            if on_end is not None:
                for episode in final:
                    on_end(episode)
            if progress is not None:
                progress(len(ended), len(places))
        return sorted(ended, key=lambda e: (e.group, e.member))

    def _in_step(
        self, places: list[_Place], seed: tuple[int, ...], max_live: int | None, own_seeds: bool
    ) -> Iterator[list[Episode]]:
        """Asks the agent once per tick for all live episodes; yields what each tick ended."""
        waiting = places[::-1]
        live: list[tuple[_Place, LiveEpisode]] = []
        tick = 0
        while waiting or live:
            ended: list[tuple[_Place, Episode]] = []
            room = len(waiting) if max_live is None else max_live - len(live)
            places = [waiting.pop() for _ in range(min(room, len(waiting)))]
            starts = self._each(lambda place: self._start(place, seed), places)
            for place, started in zip(places, starts, strict=True):
                if isinstance(started, Episode):
                    ended.append((place, started))
                else:
                    live.append((place, started))
            now = seed if own_seeds else (*seed, tick)
            situations = [e.situation(seed if own_seeds else None) for _, e in live]
            decisions = self.agent.act(situations, seed=now) if live else []
            going = []
            results = self._each(self.runner.advance, [episode for _, episode in live], decisions)
            for (place, episode), result in zip(live, results, strict=True):
                if result is None:
                    going.append((place, episode))
                else:
                    ended.append((place, result))
            live = going
            final, again = self._settle(ended, now)
            waiting += again
            tick += 1
            yield final

    def _each(self, function: Callable[..., T], *arguments: Sequence[Any]) -> list[T]:
        """Works like `map`; where environments may hang, it waits for all at the same time."""
        if self.runner.timeout_s is None:
            return [function(*one) for one in zip(*arguments, strict=True)]
        with ThreadPoolExecutor(MOST_CONCURRENT, thread_name_prefix="episode") as threads:
            return list(threads.map(function, *arguments))

    def _on_their_own(
        self, places: list[_Place], seed: tuple[int, ...], max_live: int | None
    ) -> Iterator[list[Episode]]:
        """Plays every episode in a thread of its own; yields those that have ended meanwhile."""
        most = min(max_live or MOST_CONCURRENT, max(1, len(places)))
        threads = ThreadPoolExecutor(most, thread_name_prefix="episode")
        stop = threading.Event()

        def submit(some: list[_Place]) -> dict[Future[Episode], _Place]:
            return {threads.submit(self._play_one, place, seed, stop): place for place in some}

        try:
            playing = submit(places)
            while playing:
                ready, _ = wait(playing, return_when=FIRST_COMPLETED)
                final, again = self._settle([(playing.pop(f), f.result()) for f in ready], seed)
                playing |= submit(again)
                yield final
        finally:
            # Reached early only by what makes every further step pointless.
            stop.set()
            getattr(self.agent, "abandon", lambda: None)()
            threads.shutdown(wait=True, cancel_futures=True)

    def _play_one(self, place: _Place, seed: tuple[int, ...], stop: threading.Event) -> Episode:
        started = self._start(place, seed)
        if isinstance(started, Episode):
            return started
        result = None
        while result is None:
            if stop.is_set():
                return started.end(Outcome.ERROR, "stopped")
            decision = self.agent.act([started.situation(seed)], seed=seed)[0]
            result = self.runner.advance(started, decision)
        return result

    def _start(self, place: _Place, seed: tuple[int, ...]) -> LiveEpisode | Episode:
        return self.runner.start(place.group, place.member, place.task_id, place.trial, seed)

    def _settle(
        self, ended: list[tuple[_Place, Episode]], seed: tuple[int, ...]
    ) -> tuple[list[Episode], list[_Place]]:
        """Separates the episodes that stand from the places that are played again."""
        again = []
        over = []
        for place, episode in ended:
            if episode.outcome is Outcome.ERROR and place.attempt <= self.retries:
                again.append(replace(place, attempt=place.attempt + 1))
            else:
                over.append(episode)
        self.replayed += len(again)
        if not over or not isinstance(self.agent, RetryingAgent):
            return over, again
        settled = list(zip(over, self.agent.settle(over, seed=seed), strict=True))
        again += [
            _Place(e.group, e.member, e.task_id, e.trial + 1) for e, s in settled if s is None
        ]
        return [s for _, s in settled if s is not None], again
