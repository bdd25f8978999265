"""Agents that measure an untrained model, all on the same terms: direct, ReAct, Reflexion."""

from __future__ import annotations

from dataclasses import dataclass, replace

from proxmo.agents.base import Agent
from proxmo.agents.language import LanguageAgent
from proxmo.agents.prompts import PromptBuilder
from proxmo.agents.react import WHOLE_EPISODE, react_layout
from proxmo.agents.reflexion import REFLECTION, ReflexionAgent
from proxmo.config import PromptConfig
from proxmo.errors import UnknownNameError, UsageError
from proxmo.policies.base import ChatPolicy, Policy

AGENTS = ("direct", "react", "reflexion")


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """How an agent prompts and samples a model; the defaults are the protocol of the baselines.

    `agent` is one of `AGENTS`; `style` is the prompt of the direct one. `tries` is how often
    Reflexion plays a task. `prompt_tokens` None means as many as the agent needs, up to the model's
    context.
    """

    agent: str = "direct"
    style: str = "think"
    temperature: float = 0.4
    max_new_tokens: int = 512
    prompt_tokens: int | None = None
    tries: int = 3


def baseline_agent(policy: Policy | ChatPolicy, settings: AgentSettings, env_id: str) -> Agent:
    """Makes an agent of a policy.

    Args:
        policy: who responds.
        settings: which agent, and how it asks; its `prompt_tokens` are set.
        env_id: gymnasium id, for the examples of ReAct and Reflexion.

    Raises:
        UnknownNameError: the agent or the style is unknown.
        UsageError: fewer than one try.
    """
    if settings.agent not in AGENTS:
        raise UnknownNameError("agent", settings.agent, AGENTS)
    if settings.tries < 1:
        raise UsageError(f"tries is {settings.tries}; expected at least 1")
    tokenizer = None if isinstance(policy, ChatPolicy) else policy.tokenizer
    prompt = PromptConfig(style=settings.style, max_prompt_tokens=settings.prompt_tokens or 0)
    layout = None
    if settings.agent != "direct":
        prompt = replace(prompt, style="react", history=WHOLE_EPISODE)
        layout = react_layout(env_id.rpartition(":")[2])
    agent = LanguageAgent(
        policy,
        PromptBuilder(prompt, tokenizer, layout),
        style=prompt.style,
        temperature=settings.temperature,
        max_new_tokens=settings.max_new_tokens,
    )
    if settings.agent != "reflexion":
        return agent
    reflection = PromptBuilder(prompt, tokenizer, REFLECTION)
    return ReflexionAgent(agent, reflection, tries=settings.tries)
