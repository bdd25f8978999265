"""Estimates the needs of a run before anything is loaded: memory by part, tokens per iteration.

The memory follows from the sizes of the model and the tensors that the learner keeps, without the
libraries' own memory and fragmentation (some GB on a GPU). tests/proxmo/training/test_estimate.py
compares it with real updates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from proxmo.config import Config
from proxmo.training.architecture import Architecture

if TYPE_CHECKING:
    from proxmo.agents.base import Decision, Situation

# Bytes per response token and vocabulary entry at the peak of the loss: the distribution, its
# gradient and the intermediate results of softmax and division, all float32.
LOGIT_BYTES = 16
# Bits of a weight in NF4, with its block scales (arXiv 2305.14314, section 3).
FOUR_BITS = 4.127
# Tokens in a batch of `TransformersPolicy`.
GENERATED_TOKENS = 65536
# Characters of a prompt per token: 2.8 in shops, 3.2 in households, with SmolLM2's tokenizer.
CHARACTERS_PER_TOKEN = 3.0
# Assumed length of a thought with its action.
THOUGHT_TOKENS = 100
# Tasks to play to see how long prompts are.
SAMPLE_TASKS = 8


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on each device, by part.

    Attributes:
        kept: weights, float32 copies, AdamW moments, reference: there all the time.
        updating: added by an update.
        sampling: added by the sampler; without vLLM's share.
        vllm_share: share of the device that vLLM takes; 0 unless vLLM runs in this process.
        cache_per_token: bytes of the keys and values of one token.
    """

    kept: Mapping[str, float]
    updating: Mapping[str, float]
    sampling: Mapping[str, float]
    vllm_share: float
    cache_per_token: int

    @property
    def update_peak(self) -> float:
        """Most bytes while training."""
        return sum(self.kept.values()) + sum(self.updating.values())

    @property
    def sampling_peak(self) -> float:
        """Most bytes while sampling, without vLLM's share."""
        return sum(self.kept.values()) + sum(self.sampling.values())


@dataclass(frozen=True, slots=True)
class Tokens:
    """Prompt and response tokens of an iteration."""

    prompt: float
    response: float

    @property
    def total(self) -> float:
        """Prompt and response tokens together."""
        return self.prompt + self.response


def memory(config: Config, model: Architecture, *, on_gpu: bool, nproc: int = 1) -> Memory:
    """Estimates the memory of each device of a run.

    Args:
        config: of the run.
        model: sizes of its model.
        on_gpu: whether it runs on a GPU, which decides the type of the parameters.
        nproc: number of processes, each with its own device.
    """
    asked = config.model
    half = asked.dtype == "bfloat16" or (asked.dtype == "auto" and on_gpu)
    width = 2 if half else 4
    whole = model.parameters
    linear = model.layers * sum(i * o for i, o in model.linear_layers)
    trained = model.adapter_parameters(asked.lora_rank) if asked.lora_rank else whole
    # Each process keeps a whole model to sample with; FSDP2 cuts a float32 copy for the update.
    sharded = asked.parallel == "fsdp" and nproc > 1
    pieces = nproc if sharded else 1
    copied = sharded or (half and not asked.lora_rank)
    weights: float = whole * width
    if asked.load_in_4bit:
        weights = (whole - linear) * width + linear * FOUR_BITS / 8
    kept = {"weights": weights}
    if config.optim.kl_coef > 0 and not asked.lora_rank:
        kept["reference"] = whole * width / pieces
    if copied:
        kept["float32 copies"] = 4 * (whole if sharded else trained) / pieces
    if asked.lora_rank:
        kept["adapters"] = 4 * trained
    kept["AdamW moments"] = 8 * trained / pieces
    gradients = 4 * trained / pieces
    if half and not sharded and not asked.lora_rank:
        gradients += width * trained
    rows, tokens = micro_batch(config)
    passing = activations(model, tokens, width, checkpointing=asked.gradient_checkpointing)
    passing += rows * (config.sampling.max_new_tokens + 1) * model.vocabulary * LOGIT_BYTES
    # The activations are freed before the optimiser steps.
    stepping = 4 * trained / pieces if on_gpu else 0.0
    updating = {"gradients": gradients, "activations and logits": max(passing, stepping)}
    cache = model.cached_values * width
    sampling = {}
    if config.rollout.engine == "transformers":
        sampling["cache"] = min(GENERATED_TOKENS, live_tokens(config)) * float(cache)
    return Memory(
        kept=kept,
        updating=updating,
        sampling=sampling,
        vllm_share=config.rollout.gpu_memory if config.rollout.engine == "vllm" else 0.0,
        cache_per_token=cache,
    )


def micro_batch(config: Config) -> tuple[int, int]:
    """(rows, tokens) of the largest micro-batch: full ones of the longest prompts and responses."""
    longest = config.prompt.max_prompt_tokens + config.sampling.max_new_tokens
    rows = max(1, config.optim.micro_batch_tokens // longest)
    return rows, rows * longest


def activations(model: Architecture, tokens: int, width: int, *, checkpointing: bool) -> float:
    """Bytes that a forward pass over so many tokens keeps for the backward pass.

    Per block and token: the inputs of the linear layers; queries, keys, values and output of
    attention; gate, up, their activation and product; input and float32 result of each norm.
    """
    attention = (2 * model.heads + 2 * model.kv_heads) * model.head_size
    block = width * (2 * model.hidden + attention + 4 * model.intermediate) + 16 * model.hidden
    if checkpointing:
        return float(tokens) * (model.layers * width * model.hidden + block)
    return float(tokens) * model.layers * block


def live_tokens(config: Config) -> int:
    """Tokens of all episodes in flight, each with the longest prompt and response."""
    episodes = config.rollout.tasks * config.rollout.group_size
    live = min(episodes, config.rollout.max_live or episodes)
    return live * (config.prompt.max_prompt_tokens + config.sampling.max_new_tokens)


def most_tokens(config: Config, steps: int) -> Tokens:
    """An upper bound: episodes of `steps` steps, every prompt and response of full length."""
    number = config.rollout.tasks * config.rollout.group_size * steps
    return Tokens(number * config.prompt.max_prompt_tokens, number * config.sampling.max_new_tokens)


@dataclass(frozen=True, slots=True)
class EpisodeSizes:
    """Mean sizes of a player's episodes: steps, tokens of a prompt, tokens of a response."""

    player: str
    steps: float
    prompt: float
    response: float

    def tokens(self, config: Config) -> Tokens:
        """Tokens of an iteration whose episodes have these sizes."""
        number = config.rollout.tasks * config.rollout.group_size * self.steps
        return Tokens(number * self.prompt, number * self.response)


def measure_episodes(config: Config, player: str) -> EpisodeSizes | None:
    """Plays a few tasks without a model and measures the prompts that a model would get.

    Args:
        config: of the run.
        player: "random" or "expert".

    Returns:
        None if the environment lacks what that player needs.
    """
    import proxmo_envs
    from proxmo.errors import UsageError
    from proxmo.evaluation.players import policy_player
    from proxmo.rollout.collector import Collector
    from proxmo.rollout.environments import EnvPool

    who, env = policy_player(player), config.env
    watching = _Watching(who.agent, config)
    ids = proxmo_envs.task_set(env.id, env.split, env.data, **env.kwargs).ids[:SAMPLE_TASKS]
    try:
        with closing(EnvPool(env, **who.env_options)) as pool:
            episodes = Collector(pool, watching).play(list(ids), seed=(config.seed,))
    except UsageError:
        return None
    if not watching.prompts:
        return None
    said = [len(step.response) for episode in episodes for step in episode.steps]
    response = sum(said) / max(1, len(said)) / CHARACTERS_PER_TOKEN + 1
    return EpisodeSizes(
        player=player,
        steps=sum(len(episode.steps) for episode in episodes) / len(episodes),
        prompt=sum(watching.prompts) / len(watching.prompts),
        response=float(THOUGHT_TOKENS) if config.prompt.style == "think" else response,
    )


class _Watching:
    """Plays as `agent` and estimates the tokens of each prompt a language model would get."""

    def __init__(self, agent: Any, config: Config) -> None:
        from proxmo.agents.prompts import PromptBuilder

        self.agent = agent
        self.builder = PromptBuilder(config.prompt, None)
        self.longest = config.prompt.max_prompt_tokens
        self.prompts: list[float] = []

    def act(self, situations: Sequence[Situation], *, seed: Sequence[int]) -> list[Decision]:
        """Decides as the agent does."""
        for situation in situations:
            text = self.builder.build(situation.view).text
            self.prompts.append(min(self.longest, len(text) / CHARACTERS_PER_TOKEN))
        decisions: list[Decision] = self.agent.act(situations, seed=seed)
        return decisions
