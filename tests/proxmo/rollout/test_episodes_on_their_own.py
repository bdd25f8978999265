"""Episodes that do not wait for each other, for worlds that hang, for another attempt."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from proxmo.agents.base import Decision, Situation
from proxmo.errors import ApiError
from proxmo.rollout.environments import EnvPool
from proxmo.types import Outcome
from tests.fakes import CounterEnv, GivenPool, ScriptedAgent
from tests.proxmo.rollout.test_collector import counter_pool, play, towards_target


class Separate(ScriptedAgent):
    """A scripted agent that may be asked from many threads."""

    concurrent = True


class Hangs(CounterEnv):
    """Does not come back from its first step until the test is over."""

    def __init__(self, over: threading.Event) -> None:
        super().__init__()
        self.over = over

    def step(self, action: str) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        result = super().step(action)
        self.over.wait(30)
        return result


def test_episodes_on_their_own_equal_those_in_step():
    tasks = ["train-3", "train-0", "train-2"]
    by_seed = lambda s: "up" if s.seed[-1] % 2 else ""  # noqa: E731
    in_step = play(ScriptedAgent(by_seed), counter_pool(), tasks, group_size=3, own_seeds=True)
    assert play(Separate(by_seed), counter_pool(), tasks, group_size=3) == in_step


def test_a_slow_episode_does_not_hold_up_the_others():
    release = threading.Event()
    ended: list[str] = []

    def decide(situation: Situation) -> str:
        if situation.info["task_id"] == "train-3" and len(ended) < 2:
            # Goes on only when both others are over: a barrier per step would wait for ever.
            assert release.wait(20)
        return "up"

    def note(episode: Any) -> None:
        ended.append(episode.task_id)
        if len(ended) == 2:
            release.set()

    tasks = ["train-3", "train-0", "train-1"]
    played = play(Separate(decide), counter_pool(), tasks, on_end=note)
    assert ended[-1] == "train-3"
    assert all(e.outcome is not Outcome.ERROR for e in played)


def test_as_many_episodes_are_in_flight_as_allowed():
    lock, now, most = threading.Lock(), 0, 0

    def decide(situation: Situation) -> str:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.01)
        with lock:
            now -= 1
        return "up"

    play(Separate(decide), counter_pool(), ["train-3"] * 3, group_size=4, max_live=2)
    assert most == 2


def test_what_makes_every_request_pointless_ends_the_play_at_once():
    asked = []

    def decide(situation: Situation) -> str:
        asked.append(situation)
        if len(asked) > 3:
            raise ApiError("no such model")
        return ""

    with pytest.raises(ApiError, match="no such model"):
        play(Separate(decide), counter_pool(), ["train-3"] * 2, group_size=50, max_live=2)
    assert len(asked) < 10


@pytest.mark.parametrize("agent", [ScriptedAgent, Separate])
def test_a_world_that_hangs_ends_its_own_episode_only(agent: type[ScriptedAgent]):
    over = threading.Event()
    pool = GivenPool([Hangs(over), CounterEnv()])
    try:
        played = play(agent(towards_target), pool, ["train-3", "train-3"], timeout_s=0.5)
    finally:
        over.set()
    assert sorted(e.outcome.value for e in played) == ["error", "won"]
    [failed] = [e for e in played if e.outcome is Outcome.ERROR]
    assert failed.cause == "EpisodeTimeout: no end after 0.5 s"


def test_an_episode_is_not_charged_for_the_time_that_another_hangs():
    over = threading.Event()

    class Slow(CounterEnv):
        def step(self, action: str) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
            time.sleep(0.01)
            return super().step(action)

    pool = GivenPool([Hangs(over), Slow(), Slow()])
    late = lambda s: "up" if len(s.view.history) == 3 else ""  # noqa: E731
    try:
        played = play(ScriptedAgent(late), pool, ["train-3"] * 3, timeout_s=0.5)
    finally:
        over.set()
    assert sorted(e.outcome.value for e in played) == ["error", "won", "won"]


def test_worlds_that_hang_are_waited_for_together():
    meeting = threading.Barrier(3)

    class Meets(CounterEnv):
        """Comes back when two others are in the same call, too."""

        def reset(self, **options: Any) -> tuple[str, dict[str, Any]]:
            meeting.wait(20)
            return super().reset(**options)

        def step(self, action: str) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
            meeting.wait(20)
            return super().step(action)

    pool = GivenPool([Meets(), Meets(), Meets()])
    agent = ScriptedAgent(towards_target)
    played = play(agent, pool, ["train-3"], group_size=3, timeout_s=10)
    assert [e.outcome for e in played] == [Outcome.WON] * 3


def test_a_timeout_of_the_environment_itself_keeps_its_own_words():
    class TimesOut(CounterEnv):
        def step(self, action: str) -> Any:
            raise TimeoutError("the shop does not answer")

    pool = GivenPool([TimesOut()])
    [played] = play(ScriptedAgent(towards_target), pool, ["train-3"], timeout_s=30)
    assert played.cause == "TimeoutError: the shop does not answer"


@pytest.mark.parametrize("agent", [ScriptedAgent, Separate])
@pytest.mark.parametrize(("retries", "outcome"), [(0, Outcome.ERROR), (1, Outcome.WON)])
def test_a_failed_episode_is_played_again_as_often_as_asked(
    agent: type[ScriptedAgent], retries: int, outcome: Outcome
):
    class Broken(CounterEnv):
        def step(self, action: str) -> Any:
            raise ConnectionError("the world fell apart")

    pool = GivenPool([Broken(), CounterEnv()])
    played = play(agent(towards_target), pool, ["train-3"], retries=retries)
    assert [e.outcome for e in played] == [outcome]


def test_a_response_that_failed_ends_the_episode_with_its_cause():
    agent = ScriptedAgent(lambda s: Decision(None, valid=False, error="the server failed"))
    [played] = play(agent, counter_pool(), ["train-3"])
    assert (played.outcome, played.cause) == (Outcome.ERROR, "the server failed")


def test_many_threads_may_take_environments_from_one_pool():
    pool: EnvPool = counter_pool()
    taken: list[Any] = []
    threads = [threading.Thread(target=lambda: taken.append(pool.take())) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(env) for env in taken}) == 16
