"""Players: an agent to be evaluated, with the settings that say all about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proxmo.agents.base import Agent
from proxmo.config import Config
from proxmo.credit.registry import find_callable
from proxmo.errors import UnknownNameError, UsageError
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
        """Returns what a run directory keeps of it."""
        return {"model": self.model, "method": self.method, **self.settings}


def policy_player(policy: str) -> Player:
    """The environment's "expert", a "random" player, or an agent of your own.

    Args:
        policy: a name, or MODULE:NAME of a class without arguments, whose instances have the method
            `act` of `proxmo.agents.base.Agent`. Its attribute `env_options`, if there is one, holds
            keyword arguments that it needs of the environment.

    Raises:
        UnknownNameError: any other name.
        UsageError: the module or the name in it does not exist, or it is no agent.
    """
    from proxmo.agents.scripted import ExpertAgent, RandomAgent

    agents: dict[str, Callable[[], Agent]] = {"expert": ExpertAgent, "random": RandomAgent}
    if ":" in policy:
        agents[policy] = _agent_of(policy)
    if policy not in agents:
        raise UnknownNameError("policy", policy, agents)
    agent = agents[policy]()
    return Player(agent, "-", policy, env_options=getattr(agent, "env_options", {}))


def _agent_of(policy: str) -> Callable[[], Agent]:
    found = find_callable(policy, "policy")
    if not callable(getattr(found, "act", None)):
        raise UsageError(
            f"--policy {policy} is {found!r:.100}, expected a class with the method "
            "`act(self, situations, *, seed)`"
        )
    return found


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
