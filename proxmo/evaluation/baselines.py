"""Players from models we did not train, and from checkpoints with another agent."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proxmo.agents.baselines import AgentSettings, baseline_agent
from proxmo.evaluation.players import Player, checkpoint_player
from proxmo.policies.base import ChatPolicy, Policy
from proxmo.policies.usage import Prices
from proxmo_envs import description_of

if TYPE_CHECKING:
    from proxmo.config import Config
    from proxmo.listener import Listener
    from proxmo.policies.openai import ApiLimits

# Token budget of a prompt that shows a whole episode.
_WHOLE_EPISODE_BUDGET = 8192


def model_player(
    name: str, env_id: str, settings: AgentSettings, *, device: str = "auto"
) -> Player:
    """A Hugging Face model, by directory or hub id.

    Raises:
        DataError: it cannot be loaded.
        UsageError: prompt and response exceed its context.
    """
    from proxmo.policies.transformers import TransformersPolicy, load_model

    model, tokenizer = load_model(name, device=device)
    return _player(TransformersPolicy(model, tokenizer), env_id, settings, name, {})


def checkpoint_with_agent(
    checkpoint: Path,
    settings: Mapping[str, Any],
    *,
    env_id: str | None = None,
    device: str = "auto",
) -> tuple[Player, Config]:
    """A checkpoint asked by another agent than the one it was trained with.

    Args:
        checkpoint: as `checkpoint_player` takes it.
        settings: fields of `AgentSettings`; those that are left out are as in training.
        env_id: the environment; None takes that of the training.
        device: where the model runs.
    """
    player, config = checkpoint_player(
        checkpoint, temperature=settings.get("temperature"), device=device
    )
    trained = {
        "style": config.prompt.style,
        "temperature": config.eval.temperature,
        "max_new_tokens": config.sampling.max_new_tokens,
    }
    policy = player.agent.policy  # type: ignore[attr-defined]  # a checkpoint's is a LanguageAgent
    how = AgentSettings(**{**trained, **settings})
    about = {"checkpoint": player.settings["checkpoint"], "trained_by": player.method}
    asked = _player(policy, env_id or config.env.id, how, player.model, about)
    # Not what the model without that training is called.
    return dataclasses.replace(asked, method=f"{player.method} ({how.agent})"), config


@contextmanager
def api_player(
    model: str,
    env_id: str,
    settings: AgentSettings,
    *,
    base_url: str | None = None,
    limits: ApiLimits | None = None,
    prices: Prices | None = None,
    out: Path | None = None,
    listener: Listener | None = None,
) -> Iterator[Player]:
    """A model behind an API, as long as the block lasts; then the listener is told what it cost.

    `out`/usage.jsonl, where that directory is, gets a line of the same.

    Raises:
        UsageError: there is no API key.
        MissingDependencyError: the client is not installed.
    """
    from proxmo.policies.openai import OpenAIPolicy

    with OpenAIPolicy(model, base_url=base_url, limits=limits, prices=prices) as policy:
        player = _player(policy, env_id, settings, model, {"base_url": policy.base_url})
        try:
            yield dataclasses.replace(player, prices=policy.prices)
        finally:
            if listener is not None:
                listener.message(f"API: {policy.usage}")
            # A directory that was refused is somebody else's; nothing was asked then.
            if out is not None and policy.usage.requests:
                with (out / "usage.jsonl").open("a", encoding="utf-8") as file:
                    file.write(json.dumps(dataclasses.asdict(policy.usage)) + "\n")


def _player(
    policy: Policy | ChatPolicy,
    env_id: str,
    settings: AgentSettings,
    model: str,
    about: Mapping[str, Any],
) -> Player:
    settings = dataclasses.replace(settings, prompt_tokens=_budget(policy, env_id, settings))
    agent = baseline_agent(policy, settings, env_id)
    return Player(agent, model, settings.agent, {**dataclasses.asdict(settings), **about})


def _budget(policy: Policy | ChatPolicy, env_id: str, settings: AgentSettings) -> int:
    """The token budget of prompts; that of an unknown context is the agent's own."""
    from proxmo.policies.transformers import check_context, context_length

    model = getattr(policy, "model", None)
    context = None if isinstance(policy, ChatPolicy) else context_length(model)
    if settings.prompt_tokens is not None:
        if context is not None:
            check_context(
                model, prompt_tokens=settings.prompt_tokens, new_tokens=settings.max_new_tokens
            )
        return settings.prompt_tokens
    needed = _WHOLE_EPISODE_BUDGET
    if settings.agent == "direct":
        needed = description_of(env_id).max_prompt_tokens
    return needed if context is None else max(1, min(needed, context - settings.max_new_tokens))
