"""The agent that is trained: what it asks the policy, and what it makes of the responses."""

from __future__ import annotations

from proxmo.agents.base import Situation
from proxmo.agents.language import LanguageAgent
from proxmo.agents.prompts import PromptBuilder, View
from proxmo.config import PromptConfig
from tests.fakes import ScriptedPolicy


def situation(
    observation: str = "now 1", admissible: tuple[str, ...] = ("up", "down")
) -> Situation:
    return Situation(View("to 2", (), 0, observation, admissible), {})


def agent(policy: ScriptedPolicy, budget: int = 200) -> LanguageAgent:
    config = PromptConfig(style="terse", history=1, max_prompt_tokens=budget)
    builder = PromptBuilder(config, policy.tokenizer)
    return LanguageAgent(policy, builder, style="terse", temperature=0.7, max_new_tokens=6)


def test_a_response_becomes_a_decision_with_all_it_was_made_of():
    policy = ScriptedPolicy(["up", "sideways", ("up", "length")])
    decisions = agent(policy).act([situation()] * 3, seed=(1, 2))
    assert [d.action for d in decisions] == ["up", "sideways", None]
    assert [d.valid for d in decisions] == [True, False, False]
    assert [d.reason for d in decisions] == ["ok", "not_admissible", "cut_by_length"]
    first = decisions[0]
    assert (first.response, first.response_ids, first.logprobs) == ("up", (7, 3), (-0.5, -0.25))
    assert first.weight_version == 9
    assert first.prompt_ids == tuple(policy.asked[0]["prompts"][0])


def test_the_policy_is_asked_once_with_the_agents_settings():
    policy = ScriptedPolicy(["up", "up"])
    agent(policy).act([situation(), situation("now 0")], seed=(4, 5))
    (asked,) = policy.asked
    assert len(asked["prompts"]) == 2
    assert (asked["temperature"], asked["max_new_tokens"], asked["seed"]) == (0.7, 6, (4, 5))


def test_a_prompt_over_the_budget_is_not_asked_and_its_neighbours_get_their_own_responses():
    policy = ScriptedPolicy(["down", "up"])
    long = situation(admissible=tuple(f"go {i}" for i in range(100)))
    decisions = agent(policy).act([situation(), long, situation()], seed=(0,))
    assert [d.overflow for d in decisions] == [False, True, False]
    assert [d.action for d in decisions] == ["down", None, "up"]
    assert not decisions[1].valid
    assert len(policy.asked[0]["prompts"]) == 2


def test_what_was_cut_from_a_prompt_is_told():
    policy = ScriptedPolicy(["up"])
    (decision,) = agent(policy, budget=60).act([situation("now " * 40)], seed=(0,))
    assert decision.cuts == ("observation",)
    assert len(decision.prompt_ids) <= 60
