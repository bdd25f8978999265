"""Episodes in flight: order, endings, isolation of what breaks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from proxmo.agents.base import Decision, Situation
from proxmo.config import EnvConfig
from proxmo.rollout.collector import Collector
from proxmo.rollout.environments import EnvPool
from proxmo.types import Episode, Outcome
from tests.fakes import COUNTER, CounterEnv, GivenPool, ScriptedAgent

COLLECTOR = ("timeout_s", "retries")


def counter_pool(**options: Any) -> EnvPool:
    return EnvPool(EnvConfig(id=COUNTER, kwargs=options))


def play(agent: ScriptedAgent, pool: Any, tasks: list[str], **options: Any) -> list[Episode]:
    own = {name: options.pop(name) for name in COLLECTOR if name in options}
    return Collector(pool, agent, **own).play(tasks, **{"seed": (0,), **options})


def towards_target(situation: Situation) -> str:
    return "up"


class Breaks(CounterEnv):
    """Raises, or misbehaves, at its third step; never ends by itself."""

    def __init__(self, how: Callable[[], Any] | None) -> None:
        super().__init__()
        self.how = how
        self.closed = False

    def step(self, action: str) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        seen, reward, _, _, info = super().step("")
        if self.steps == 3 and self.how is not None:
            reward = self.how()
        return seen, reward, False, self.steps == 4, info

    def close(self) -> None:
        self.closed = True


def raising() -> Any:
    raise ConnectionError("the world fell apart")


def test_episodes_come_back_by_task_and_member_whenever_they_end():
    agent = ScriptedAgent(lambda s: "up" if "now 3" in s.view.observation else "")
    tasks = ["train-3", "train-0", "train-3"]
    episodes = play(agent, counter_pool(), tasks, group_size=2)
    assert [(e.group, e.member) for e in episodes] == [(g, m) for g in range(3) for m in range(2)]
    assert [e.task_id for e in episodes] == [task for task in tasks for _ in range(2)]


def test_a_step_holds_what_was_seen_before_the_action_and_what_was_paid_for_it():
    decision = Decision("uu", True, "ok", "raw", (1, 2), (3,), (-0.5,), weight_version=4)
    (episode,) = play(ScriptedAgent(lambda s: decision), counter_pool(), ["train-0"])
    first = episode.steps[0]
    assert first.observation.startswith("now ")
    assert (first.prompt_ids, first.response_ids, first.logprobs) == ((1, 2), (3,), (-0.5,))
    assert (first.response, first.action, first.valid, first.reason) == ("raw", "uu", True, "ok")
    assert first.weight_version == 4
    assert [step.index for step in episode.steps] == list(range(5))
    start = int(first.observation.removeprefix("now "))
    assert [s.observation for s in episode.steps] == [f"now {start + 2 * i}" for i in range(5)]


def test_the_agent_sees_the_task_the_history_and_the_admissible_actions():
    seen: list[Situation] = []

    def look(situation: Situation) -> str:
        seen.append(situation)
        return "stay"

    play(ScriptedAgent(look), counter_pool(free=False), ["train-2"])
    last = seen[-1].view
    assert last.task.startswith("to ")
    assert (last.step, [turn.action for turn in last.history]) == (4, ["stay"] * 4)
    assert last.admissible == ("up", "down", "stay")
    assert seen[-1].info["task_id"] == "train-2"


@pytest.mark.parametrize(
    ("action", "from_step", "outcome", "length"),
    [
        ("u", 0, Outcome.WON, 1),
        ("dddddd", 0, Outcome.LOST, 1),
        ("", 0, Outcome.TRUNCATED, 5),
        # A win at the step limit is a win.
        ("u", 4, Outcome.WON, 5),
    ],
)
def test_an_episode_ends_as_its_environment_says(
    action: str, from_step: int, outcome: Outcome, length: int
):
    agent = ScriptedAgent(lambda s: action if s.view.step >= from_step else "")
    (episode,) = play(agent, counter_pool(), ["train-0"])
    assert (episode.outcome, len(episode.steps)) == (outcome, length)
    assert episode.score == float(outcome is Outcome.WON)
    assert (episode.task_type, episode.cause) == ("even", None)


def test_a_world_that_raises_ends_its_own_episode_and_the_group_goes_on():
    envs = [Breaks(raising if member == 5 else None) for member in range(8)]
    pool = GivenPool(envs)
    episodes = play(ScriptedAgent(towards_target), pool, ["train-0"], group_size=8)
    outcomes = [e.outcome for e in episodes]
    assert outcomes == [Outcome.ERROR if m == 5 else Outcome.TRUNCATED for m in range(8)]
    assert episodes[5].cause == "ConnectionError: the world fell apart"
    assert len(episodes[5].steps) == 2
    assert all(e.cause is None and len(e.steps) == 4 for m, e in enumerate(episodes) if m != 5)
    # A broken environment is closed and never used again.
    assert [env.closed for env in envs] == [m == 5 for m in range(8)]
    assert len(pool.returned) == 7 and envs[5] not in pool.returned


@pytest.mark.parametrize("timeout_s", [None, 5.0])
def test_an_exit_ends_its_own_episode_and_an_interrupt_the_run(timeout_s: float | None):
    def leave(cause: BaseException) -> Any:
        raise cause

    agent = ScriptedAgent(towards_target)
    pool = GivenPool([Breaks(lambda: leave(SystemExit(3)))])
    (episode,) = play(agent, pool, ["train-0"], timeout_s=timeout_s)
    assert (episode.outcome, episode.cause) == (Outcome.ERROR, "SystemExit: 3")
    with pytest.raises(KeyboardInterrupt):
        pool = GivenPool([Breaks(lambda: leave(KeyboardInterrupt()))])
        play(agent, pool, ["train-0"], timeout_s=timeout_s)


@pytest.mark.parametrize("reward", [math.nan, math.inf, None, "much"])
def test_a_reward_that_is_no_finite_number_fails_the_episode_alone(reward: Any):
    pool = GivenPool([Breaks(lambda: reward), Breaks(None)])
    bad, good = play(ScriptedAgent(towards_target), pool, ["train-0"], group_size=2)
    assert (bad.outcome, good.outcome) == (Outcome.ERROR, Outcome.TRUNCATED)
    assert bad.cause is not None and bad.episode_return == 0.0


@pytest.mark.parametrize(
    ("shown", "info", "cause"),
    [
        (None, {}, "the observation is None, expected a text"),
        (3, {}, "the observation is 3, expected a text"),
        ("", None, "info is None, expected a dictionary"),
        ("", {"task": None}, "info['task'] is None, expected a text"),
        ("", {"admissible_actions": "look"}, "info['admissible_actions'] is 'look'"),
        ("", {"admissible_actions": [1]}, "info['admissible_actions'] is [1], expected a list"),
        ("", {"score": None}, "info['score'] is None, expected a number from 0 to 1"),
        ("", {"score": math.nan}, "info['score'] is nan, expected a number from 0 to 1"),
        ("", {"won": "False"}, "info['won'] is 'False', expected True or False"),
        (3, {"task": 4}, "the observation is 3, expected a text; info['task'] is 4"),
    ],
)
@pytest.mark.parametrize("call", ["reset", "step"])
def test_what_no_prompt_can_be_made_of_fails_the_episode_alone(
    shown: Any, info: Any, cause: str, call: str
):
    class Odd(CounterEnv):
        def reset(self, **options: Any) -> Any:
            seen = super().reset(**options)
            return (shown, info) if call == "reset" else seen

        def step(self, action: str) -> Any:
            return shown, 0.0, False, False, info

    pool = GivenPool([Odd(), CounterEnv()])
    bad, good = play(ScriptedAgent(towards_target), pool, ["train-0"], group_size=2)
    assert (bad.outcome, good.outcome) == (Outcome.ERROR, Outcome.WON)
    assert bad.cause is not None and cause in bad.cause


def test_a_task_that_cannot_be_started_is_an_error_with_its_cause():
    bad, good = play(ScriptedAgent(towards_target), counter_pool(), ["train-x", "train-0"])
    assert bad.outcome is Outcome.ERROR and bad.steps == ()
    assert bad.cause is not None and bad.cause.startswith("ValueError: invalid literal")
    assert good.outcome is Outcome.WON


def test_when_closing_a_broken_world_fails_too_the_first_cause_is_kept():
    class Stuck(Breaks):
        def close(self) -> None:
            raise OSError("and does not close")

    (episode,) = play(ScriptedAgent(towards_target), GivenPool([Stuck(raising)]), ["train-0"])
    assert episode.cause == "ConnectionError: the world fell apart"


def test_a_prompt_that_does_not_fit_ends_the_episode_as_overflow_without_a_step():
    def overflow_at_two(situation: Situation) -> Decision:
        if situation.view.step == 2:
            return Decision(None, valid=False, reason="overflow", overflow=True)
        return Decision("")

    pool = GivenPool([Breaks(None)])
    agent = ScriptedAgent(overflow_at_two)
    (episode,) = play(agent, pool, ["train-0"])
    assert (episode.outcome, len(episode.steps)) == (Outcome.OVERFLOW, 2)
    assert episode.cause is not None and "raise prompt.max_prompt_tokens" in episode.cause
    # Nothing was played, so nothing is paid for; the environment is sound and used again.
    assert episode.episode_return == 0.0
    assert len(pool.returned) == 1


def test_a_response_without_an_action_is_played_as_the_empty_text():
    actions = []

    class Listens(CounterEnv):
        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            actions.append(action)
            return (*super().step(action)[:2], True, False, {})

    play(ScriptedAgent(lambda s: Decision(None, valid=False)), GivenPool([Listens()]), ["train-0"])
    assert actions == [""]


def test_members_of_a_group_start_alike_and_other_seeds_start_elsewhere():
    agent = ScriptedAgent(lambda s: "")

    def starts(seed: int) -> list[str]:
        episodes = play(agent, counter_pool(), ["train-0"] * 3, group_size=4, seed=(seed,))
        return [e.steps[0].observation for e in episodes]

    assert all(len(set(starts(seed))) == 1 for seed in range(5))
    assert len({starts(seed)[0] for seed in range(20)}) == 4


def test_equal_seeds_give_equal_episodes_and_every_tick_has_a_seed_of_its_own():
    first, second = ScriptedAgent(towards_target), ScriptedAgent(towards_target)
    tasks = ["train-0", "train-1"]
    assert play(first, counter_pool(), tasks) == play(second, counter_pool(), tasks)
    assert first.seeds == second.seeds
    play(agent := ScriptedAgent(lambda s: ""), counter_pool(), tasks, seed=(7, 1))
    assert agent.seeds == [(7, 1, tick) for tick in range(5)]


@pytest.mark.parametrize("max_live", [1, 2, 3, 100, None])
def test_how_many_are_in_flight_does_not_change_what_is_played(max_live: int | None):
    agent = ScriptedAgent(lambda s: "u" if s.view.step else "")
    tasks = [f"train-{i}" for i in range(5)]
    episodes = play(agent, counter_pool(), tasks, max_live=max_live)
    assert max(agent.asked) == min(max_live or 5, 5)
    assert [(e.task_id, len(e.steps), e.outcome) for e in episodes] == [
        (task, 2, Outcome.WON) for task in tasks
    ]


class Chance:
    """Plays what the seed of each situation says, else what the seed of the call says."""

    def act(self, situations: Any, *, seed: Any) -> list[Decision]:
        draws = [np.random.default_rng(list(s.seed or seed)).integers(3) for s in situations]
        return [Decision("ud "[int(draw)]) for draw in draws]


def actions(episodes: list[Episode]) -> dict[tuple[str, int], str]:
    return {(e.task_id, e.member): "".join(s.action or "" for s in e.steps) for e in episodes}


def test_with_seeds_of_its_own_an_episode_does_not_depend_on_its_company():
    tasks = [f"train-{i}" for i in range(6)]

    def played(tasks: list[str], **options: Any) -> dict[tuple[str, int], str]:
        agent: Any = Chance()
        return actions(play(agent, counter_pool(), tasks, group_size=2, seed=(4,), **options))

    together = played(tasks, own_seeds=True)
    assert all(played(tasks, own_seeds=True, max_live=n) == together for n in (1, 3, 8))
    assert {k: v for t in tasks for k, v in played([t], own_seeds=True).items()} == together
    assert any(together[task, 0] != together[task, 1] for task in tasks)
    # Draws that are shared by a tick do depend on it, else the test above would show nothing.
    assert played(tasks, max_live=1) != played(tasks)


def test_what_is_done_is_not_played_again():
    agent = ScriptedAgent(towards_target)
    tasks, done = ["train-0", "train-1", "train-0"], {(0, 0), (0, 1), (2, 1)}
    episodes = play(agent, counter_pool(), tasks, group_size=2, done=done)
    assert [(e.group, e.member) for e in episodes] == [(1, 0), (1, 1), (2, 0)]


def test_every_episode_is_told_of_as_soon_as_it_ends():
    told: list[Episode] = []
    agent = ScriptedAgent(lambda s: "uuu" if s.info["task_id"] == "train-0" else "u")
    tasks = ["train-0", "train-x", "train-1"]
    episodes = play(agent, counter_pool(), tasks, on_end=told.append)
    assert [e.task_id for e in told] == ["train-x", "train-1", "train-0"]
    assert sorted(told, key=lambda e: e.group) == episodes


def test_progress_counts_up_to_all_episodes():
    told: list[tuple[int, int]] = []
    agent = ScriptedAgent(towards_target)
    play(
        agent,
        counter_pool(broken=["train-1"]),
        ["train-0", "train-1"],
        group_size=2,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told[-1] == (4, 4)
    assert told == sorted(told)


def test_nobody_is_asked_when_there_is_nothing_to_play():
    agent = ScriptedAgent(towards_target)
    assert play(agent, counter_pool(), []) == []
    assert agent.asked == []
