"""What an untrained model is measured with, all on the same terms: direct, ReAct, Reflexion."""

from __future__ import annotations

from dataclasses import replace

from proxmo.agents.base import Agent
from proxmo.agents.language import LanguageAgent
from proxmo.agents.prompts import PromptBuilder
from proxmo.agents.react import WHOLE_EPISODE, react_layout
from proxmo.agents.reflexion import REFLECTION, ReflexionAgent
from proxmo.config import PromptConfig
from proxmo.errors import UnknownNameError, UsageError
from proxmo.policies.base import ChatPolicy, Policy

AGENTS = ("direct", "react", "reflexion")


def baseline_agent(
    kind: str,
    policy: Policy | ChatPolicy,
    prompt: PromptConfig,
    *,
    world: str,
    temperature: float,
    max_new_tokens: int,
    tries: int = 3,
) -> Agent:
    """Makes an agent of a policy.

    Args:
        kind: one of `AGENTS`.
        policy: who responds.
        prompt: style and history of the direct agent, token budget of all.
        world: gymnasium id, for the examples of ReAct and Reflexion.
        temperature: of the sampling, 0 is greedy.
        max_new_tokens: longest response.
        tries: most episodes per task, for Reflexion.

    Raises:
        UnknownNameError: `kind` or the style is none.
        UsageError: fewer than one try.
    """
    if kind not in AGENTS:
        raise UnknownNameError("agent", kind, AGENTS)
    if tries < 1:
        raise UsageError(f"tries is {tries}; expected at least 1")
    tokenizer = None if isinstance(policy, ChatPolicy) else policy.tokenizer
    layout = None
    if kind != "direct":
        prompt = replace(prompt, style="react", history=WHOLE_EPISODE)
        layout = react_layout(world.rpartition(":")[2])
    agent = LanguageAgent(
        policy,
        PromptBuilder(prompt, tokenizer, layout),
        style=prompt.style,
        temperature=temperature,
        max_new_tokens=max_new_tokens,
    )
    if kind != "reflexion":
        return agent
    return ReflexionAgent(agent, PromptBuilder(prompt, tokenizer, REFLECTION), tries=tries)
