"""Who is evaluated: an agent, and the settings that say all about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proxmo.agents.base import Agent
from proxmo.config import Config
from proxmo.errors import UnknownNameError
from proxmo.policies.usage import Prices


@dataclass(frozen=True, slots=True)
class Player:
    """An agent to be evaluated.

    Args:
        agent: who plays.
        model: what it is called in tables; "-" without a language model.
        method: how it was trained, or how it is asked.
        settings: all that its play depends on, as JSON; an evaluation that is continued must have
            the same.
        env_options: keyword arguments of the environment that the agent needs.
        prices: of the tokens it reads and writes.
    """

    agent: Agent
    model: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    env_options: Mapping[str, Any] = field(default_factory=dict)
    prices: Prices = Prices()

    def to_json(self) -> dict[str, Any]:
        """What a run directory keeps of it."""
        return {"model": self.model, "method": self.method, **self.settings}


def policy_player(policy: str) -> Player:
    """The environment's "expert" or a "random" player.

    Raises:
        UnknownNameError: any other name.
    """
    from proxmo.agents.scripted import ExpertAgent, RandomAgent

    agents: dict[str, Agent] = {"expert": ExpertAgent(), "random": RandomAgent()}
    if policy not in agents:
        raise UnknownNameError("policy", policy, agents)
    options = {"expert_action": True} if policy == "expert" else {}
    return Player(agents[policy], "-", policy, env_options=options)


def checkpoint_player(
    checkpoint: Path, *, temperature: float | None = None, device: str = "auto"
) -> tuple[Player, Config]:
    """A trained agent, asked as it was in training, and the configuration it was trained with.

    Args:
        checkpoint: a checkpoint, or a run directory for its latest one.
        temperature: of the sampling; None takes that of the run's evaluations.
        device: where the model runs.

    Raises:
        CheckpointError: when the directory is not a checkpoint.
    """
    from proxmo.agents.language import LanguageAgent
    from proxmo.agents.prompts import PromptBuilder
    from proxmo.checkpoints import read_checkpoint
    from proxmo.config_loading import from_table
    from proxmo.policies.transformers import TransformersPolicy, load_model

    found = read_checkpoint(checkpoint)
    config = from_table(found.settings["config"])
    temperature = config.eval.temperature if temperature is None else temperature
    model, tokenizer = load_model(str(found.path), device=device, dtype=config.model.dtype)
    agent = LanguageAgent(
        TransformersPolicy(model, tokenizer),
        PromptBuilder(config.prompt, tokenizer),
        style=config.prompt.style,
        temperature=temperature,
        max_new_tokens=config.sampling.max_new_tokens,
    )
    settings = {"checkpoint": str(found.path.resolve()), "temperature": temperature}
    method = config.credit.method if found.iteration else "warm start"
    return Player(agent, config.model.name, method, settings), config
