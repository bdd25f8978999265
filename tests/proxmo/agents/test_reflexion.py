"""Reflexion: lost tasks are played again with notes, per task, and trials are counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from proxmo.agents.base import Agent
from proxmo.agents.baselines import AgentSettings, baseline_agent
from proxmo.agents.language import LanguageAgent
from proxmo.agents.reflexion import KEPT_NOTES, ReflexionAgent
from proxmo.config import EnvConfig
from proxmo.errors import UnknownNameError, UsageError
from proxmo.policies.base import Response
from proxmo.rollout.collector import Collector
from proxmo.rollout.environments import EnvPool
from proxmo.types import Episode, Outcome
from tests.fakes import COUNTER, ScriptedPolicy

REFLECTION = "did not reach the goal"


class Chat:
    """Responses by a function of the message; an error is a response that starts with "!"."""

    def __init__(self, answer: Callable[[str], str]) -> None:
        self.answer = answer
        self.messages: list[str] = []

    def respond(
        self, messages: Sequence[str], *, temperature: float, max_new_tokens: int, seed: object
    ) -> list[Response]:
        self.messages += messages
        said = [self.answer(one) for one in messages]
        return [
            Response((), (), "", "stop", 0, one[1:])
            if one.startswith("!")
            else Response((), (), one, "stop", 0)
            for one in said
        ]

    @property
    def reflections(self) -> list[str]:
        return [one for one in self.messages if REFLECTION in one]


def agent_of(policy: Any, kind: str, **options: Any) -> Agent:
    settings = AgentSettings(kind, max_new_tokens=9, prompt_tokens=4000, **options)
    return baseline_agent(policy, settings, COUNTER)


def play(chat: Chat, tasks: Sequence[str], trials: int = 3, **options: object) -> list[Episode]:
    agent = agent_of(chat, "reflexion", tries=trials)
    pool = EnvPool(EnvConfig(id=COUNTER))
    return Collector(pool, agent).play(tasks, seed=(0,), **options)


def waits_unless_told(message: str) -> str:
    if REFLECTION in message:
        return "<think>hm</think> I waited;\n next time I count up."
    return "Thought: go\nAction: up" if "next time I count up" in message else "Action: stay"


def test_a_lost_task_is_played_again_with_the_note_from_the_same_start():
    chat = Chat(waits_unless_told)
    (episode,) = play(chat, ["train-2"])
    assert (episode.outcome, episode.trial, len(episode.steps)) == (Outcome.WON, 2, 1)
    (reflection,) = chat.reflections
    first, again = chat.messages[0], chat.messages[-1]
    task = first[first.index("Task: ") :]
    assert again.endswith(task)
    assert "- I waited; next time I count up.\n\nTask: " in again
    assert reflection.count("Action: stay") == 5
    assert "All 5 steps are used up." in reflection


def test_a_task_that_is_won_at_once_is_not_played_again():
    chat = Chat(lambda _: "Action: up")
    (episode,) = play(chat, ["train-2"])
    assert (episode.outcome, episode.trial, chat.reflections) == (Outcome.WON, 1, [])


def test_the_last_trial_stands_and_only_the_last_notes_are_kept():
    numbers = iter(range(100))

    def never_learns(message: str) -> str:
        return f"note {next(numbers)}" if REFLECTION in message else "Action: stay"

    chat = Chat(never_learns)
    trials = KEPT_NOTES + 3
    (episode,) = play(chat, ["train-2"], trials)
    assert (episode.outcome, episode.trial) == (Outcome.TRUNCATED, trials)
    assert len(chat.reflections) == trials - 1
    last = chat.messages[-1]
    assert [f"- note {n}\n" in last for n in range(5)] == [False, False, True, True, True]


def test_notes_belong_to_one_episode_of_one_task():
    def counts_up_once_told_the_target(message: str) -> str:
        task = message.rpartition("Task: ")[2].partition("\n")[0]
        if REFLECTION in message:
            return f"the task was {task}."
        notes = message.partition("afterwards:\n")[2].partition("Task:")[0]
        assert notes.strip() in ("", f"- the task was {task}.")
        return "Action: up" if notes else "Action: stay"

    episodes = play(Chat(counts_up_once_told_the_target), ["train-0", "train-4"], group_size=2)
    assert [(e.won, e.trial) for e in episodes] == [(True, 2)] * 4


def test_company_does_not_matter():
    alone = [play(Chat(waits_unless_told), [task])[0] for task in ("train-1", "train-3")]
    together = play(Chat(waits_unless_told), ["train-1", "train-3"], max_live=1)
    assert [e.steps for e in alone] == [e.steps for e in together]


def test_a_note_that_cannot_be_had_makes_an_error_and_not_a_loss():
    chat = Chat(lambda message: "!status 500" if REFLECTION in message else "Action: stay")
    (episode,) = play(chat, ["train-2"])
    assert (episode.outcome, episode.cause) == (Outcome.ERROR, "no note on trial 1: status 500")


def test_an_error_of_the_policy_is_not_reflected_on():
    chat = Chat(lambda message: "!status 500")
    (episode,) = play(chat, ["train-2"])
    assert (episode.outcome, episode.trial, len(chat.messages)) == (Outcome.ERROR, 1, 1)


def test_a_policy_of_tokens_reflects_too_and_all_its_tokens_are_counted():
    policy = ScriptedPolicy(["Action: stay"] * 5 + ["try up"] + ["Action: up"])
    agent = agent_of(policy, "reflexion")
    (episode,) = Collector(EnvPool(EnvConfig(id=COUNTER)), agent).play(["train-2"], seed=(0,))
    assert (episode.won, episode.trial, policy.texts) == (True, 2, [])
    assert all(asked["prompts"][0] for asked in policy.asked)
    read = sum(len(prompt) for asked in policy.asked for prompt in asked["prompts"])
    # Five lost steps, the note, the winning step; each response has two tokens.
    assert (episode.prompt_tokens, episode.response_tokens) == (read, 7 * 2)
    assert len(episode.steps) == 1


def test_agents_are_made_by_name():
    def made(kind: str, **options: object) -> Agent:
        return agent_of(Chat(lambda _: ""), kind, **options)

    direct, react = made("direct"), made("react")
    assert isinstance(direct, LanguageAgent) and direct.style == "think"
    assert isinstance(react, LanguageAgent) and react.style == "react"
    assert isinstance(made("reflexion"), ReflexionAgent)
    with pytest.raises(UnknownNameError, match="did you mean react"):
        made("reakt")
    with pytest.raises(UsageError, match="tries is 0"):
        made("reflexion", tries=0)
