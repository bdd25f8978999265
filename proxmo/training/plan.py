"""What `proxmo train --dry-run` adds to the configuration: model, device, memory, tokens.

The memory follows from the sizes of the model and the tensors that the learner keeps, without the
libraries' own memory and fragmentation (some GB on a GPU). tests/proxmo/training/test_plan.py
compares it with real updates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium

import proxmo_envs
from proxmo.config import Config
from proxmo.errors import UsageError
from proxmo.formats import count
from proxmo.training.architecture import FAMILIES, Architecture, find_architecture

if TYPE_CHECKING:
    from proxmo.agents.base import Decision, Situation

GB = 1e9
# Assumed memory of a GPU if this machine has none.
_USUAL_GPU = 80 * GB
# Exists if NVIDIA's driver is loaded; asking torch costs seconds.
_DRIVER = Path("/dev/nvidiactl")
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


def plan(config: Config, *, play: bool, nproc: int = 1) -> list[str]:
    """Lines about the needs of a run, as far as they can be known.

    Args:
        config: of the run.
        play: whether to play a few tasks without a model, to see how long prompts are.
        nproc: number of processes, each with its own device.

    Raises:
        UsageError: this machine lacks the device, or the model's context is too short.
    """
    gpus = _gpus(config.model.device)
    model = find_architecture(config.model.name, config.env.id)
    lines = [_model_line(config, model)]
    if config.model.device == "cpu":
        lines.append("device: cpu")
    elif gpus:
        lines.append(f"device: {len(gpus)} GPUs here, the first of {gpus[0] / GB:.0f} GB")
    else:
        lines.append("device: no GPU here, so cpu on this machine")
    if model is not None:
        # vLLM in this process means a GPU, even if this machine has none.
        on_gpu = config.model.device != "cpu" and bool(gpus or config.rollout.engine == "vllm")
        needed = memory(config, model, on_gpu=on_gpu, nproc=nproc)
        lines += _memory_lines(config, needed, gpus[0] if gpus else _USUAL_GPU, nproc)
    return [*lines, *_token_lines(config, play)]


def _gpus(device: str) -> list[float]:
    """Bytes of each GPU of this machine; raises if it lacks the configured one."""
    if device == "cpu" or (device == "auto" and not _DRIVER.exists()):
        return []
    import torch

    number = torch.cuda.device_count()
    if device != "auto" and int(device.partition(":")[2] or 0) >= number:
        raise UsageError(
            f"model.device is {device!r}, but torch sees {number} GPUs; use cpu or auto"
        )
    return [float(torch.cuda.get_device_properties(i).total_memory) for i in range(number)]


def _model_line(config: Config, model: Architecture | None) -> str:
    if model is None:
        return (
            f"model: the sizes of {config.model.name} are not known here, and so neither the "
            f"memory: it is not in the cache, or no model of {', '.join(FAMILIES)}"
        )
    needed = _longest(config)
    if model.context is not None and needed > model.context:
        raise UsageError(
            f"prompts of {config.prompt.max_prompt_tokens} and responses of "
            f"{config.sampling.max_new_tokens} tokens exceed the context of {config.model.name}, "
            f"{model.context}; lower prompt.max_prompt_tokens or sampling.max_new_tokens"
        )
    text = f"model: {config.model.name}, {model.parameters:,} parameters"
    if config.model.lora_rank:
        trained = model.adapter_parameters(config.model.lora_rank)
        text += f", {trained:,} of adapters are trained"
    return f"{text}; {needed:,} of {model.context:,} tokens of context" if model.context else text


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on each device, by part.

    Attributes:
        kept: weights, float32 copies, AdamW moments, reference: there all the time.
        updating: added by an update.
        sampling: added by the sampler, if it is the model itself.
        cache_per_token: bytes of the keys and values of one token.
    """

    kept: Mapping[str, float]
    updating: Mapping[str, float]
    sampling: Mapping[str, float]
    cache_per_token: int

    @property
    def update_peak(self) -> float:
        """Most bytes while training."""
        return sum(self.kept.values()) + sum(self.updating.values())

    @property
    def sampling_peak(self) -> float:
        """Most bytes while sampling, without those of an engine."""
        return sum(self.kept.values()) + sum(self.sampling.values())


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
    trained = model.adapter_parameters(asked.lora_rank) if asked.lora_rank else whole
    # Each process keeps a whole model to sample with; FSDP2 cuts a float32 copy for the update.
    sharded = asked.parallel == "fsdp" and nproc > 1
    pieces = nproc if sharded else 1
    kept: dict[str, float] = {"weights": whole * width}
    if asked.load_in_4bit:
        linear = model.layers * sum(i * o for i, o in model.linear_layers)
        kept["weights"] = (whole - linear) * width + linear * FOUR_BITS / 8
    if config.optim.kl_coef > 0 and not asked.lora_rank:
        kept["reference"] = whole * width / pieces
    if sharded or (half and not asked.lora_rank):
        kept["float32 copies"] = 4 * (whole if sharded else trained) / pieces
    if asked.lora_rank:
        kept["adapters"] = 4 * trained
    kept["AdamW moments"] = 8 * trained / pieces
    gradients = 4 * trained / pieces
    if half and not sharded and not asked.lora_rank:
        gradients += width * trained
    # The activations are freed before the optimiser steps.
    stepping = 4 * trained / pieces if on_gpu else 0.0
    cache = model.cached_values * width
    episodes = config.rollout.tasks * config.rollout.group_size
    live = min(episodes, config.rollout.max_live or episodes) * _longest(config)
    sampling = {"cache": float(min(GENERATED_TOKENS, live) * cache)}
    return Memory(
        kept=kept,
        updating={
            "gradients": gradients,
            "activations and logits": max(_activations(config, model, width), stepping),
        },
        sampling=sampling if config.rollout.engine == "transformers" else {},
        cache_per_token=cache,
    )


def _longest(config: Config) -> int:
    """Tokens of the longest prompt and response together."""
    return config.prompt.max_prompt_tokens + config.sampling.max_new_tokens


def _activations(config: Config, model: Architecture, width: int) -> float:
    """Bytes that the pass over the largest micro-batch keeps for the backward pass.

    Per block and token: the inputs of the linear layers; queries, keys, values and output of
    attention; gate, up, their activation and product; input and float32 result of each norm.
    """
    rows = max(1, config.optim.micro_batch_tokens // _longest(config))
    (_, queries), (_, keys), *_, (intermediate, _) = model.linear_layers
    values = 2 * model.hidden + 2 * queries + 2 * keys + 4 * intermediate
    block = width * values + 16 * model.hidden
    blocks = model.layers * block
    if config.model.gradient_checkpointing:
        blocks = model.layers * width * model.hidden + block
    logits = (config.sampling.max_new_tokens + 1) * model.vocabulary * LOGIT_BYTES
    return float(rows * (_longest(config) * blocks + logits))


def _memory_lines(config: Config, needed: Memory, device: float, nproc: int) -> Iterator[str]:
    each = f" on each of {nproc} devices" if nproc > 1 else ""
    yield (
        f"memory: {_size(needed.update_peak)}{each} while training "
        f"({_parts({**needed.kept, **needed.updating})}), libraries not counted"
    )
    sampling = f"memory: {_size(needed.sampling_peak)}{each} while sampling"
    if config.rollout.engine != "vllm":
        yield sampling + (
            f" ({_parts(needed.sampling)})" if needed.sampling else ", the sampler's not counted"
        )
        return
    share = config.rollout.gpu_memory * device
    room = max(0.0, share - needed.kept["weights"]) / needed.cache_per_token
    yield (
        f"{sampling}, beside vLLM's "
        f"{_size(share)} ({config.rollout.gpu_memory:g} of {_size(device)}): its weights, and keys "
        f"and values of {count(int(room))} tokens ({_size(needed.cache_per_token)} each)"
    )
    peak = max(needed.update_peak, needed.sampling_peak + share)
    if config.rollout.lag:
        peak = needed.update_peak + share
    if peak > device:
        yield (
            f"memory: {_size(peak)} do not fit into {_size(device)}: cut the optimiser's state "
            "(--nproc N --set model.parallel=fsdp), train adapters (model.lora_rank), lower "
            "rollout.gpu_memory or optim.micro_batch_tokens"
        )


def _parts(parts: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {_size(size)}" for name, size in parts.items())


def _size(size: float) -> str:
    for unit, scale in (("GB", GB), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size:.0f} bytes"


def _token_lines(config: Config, play: bool) -> Iterator[str]:
    """An upper bound of the tokens of an iteration, and estimates from a few episodes."""
    name = config.env.id.rpartition(":")[2]
    spec = gymnasium.registry.get(name)  # an environment of the user's own after its import
    limit = config.env.max_steps or (spec.max_episode_steps if spec else None)
    episodes = config.rollout.tasks * config.rollout.group_size
    full = (config.prompt.max_prompt_tokens, config.sampling.max_new_tokens)
    if limit is None:
        yield f"tokens: no upper bound, {name} has no step limit here (env.max_steps)"
    else:
        tokens = _per_iteration(episodes * limit, *full)
        yield f"tokens: at most {tokens} ({episodes} episodes of {limit} steps)"
    for player in ("expert", "random") if play else ():
        sizes = measure_episodes(config, player)
        if sizes is None:
            yield f"tokens: {name} cannot be played by the {player} player"
            continue
        steps, prompt, response = sizes
        yield (
            f"tokens: about {_per_iteration(episodes * steps, prompt, response)}, for an "
            f"agent that plays like the {player} one ({steps:.1f} steps an episode, prompts of "
            f"{prompt:.0f}, responses of {response:.0f} tokens)"
        )


def _per_iteration(steps: float, prompt: float, response: float) -> str:
    return (
        f"{count(steps * (prompt + response))} per iteration, {count(steps * prompt)} of prompts "
        f"and {count(steps * response)} of responses"
    )


def measure_episodes(config: Config, player: str) -> tuple[float, float, float] | None:
    """Plays a few tasks without a model and measures the prompts that a model would get.

    Args:
        config: of the run.
        player: "random" or "expert".

    Returns:
        Means: steps of an episode, tokens of a prompt, tokens of a response. None if the
        environment lacks what that player needs.
    """
    from proxmo.evaluation.players import policy_player
    from proxmo.rollout.collector import Collector
    from proxmo.rollout.environments import EnvPool

    who, env = policy_player(player), config.env
    counting = _PromptCounter(who.agent, config)
    ids = proxmo_envs.task_set(env.id, env.split, env.data, **env.kwargs).ids[:SAMPLE_TASKS]
    try:
        with closing(EnvPool(env, **who.env_options)) as pool:
            episodes = Collector(pool, counting).play(list(ids), seed=(config.seed,))
    except UsageError:
        return None
    said = [len(step.response) for episode in episodes for step in episode.steps]
    if not said:
        return None
    thinks = config.prompt.style == "think"
    return (
        len(said) / len(episodes),
        sum(counting.tokens) / len(counting.tokens),
        THOUGHT_TOKENS if thinks else sum(said) / len(said) / CHARACTERS_PER_TOKEN + 1,
    )


class _PromptCounter:
    """Plays as `agent` and estimates the tokens of each prompt a language model would get."""

    def __init__(self, agent: Any, config: Config) -> None:
        from proxmo.agents.prompts import PromptBuilder

        self.agent = agent
        self.builder = PromptBuilder(config.prompt, None)
        self.longest = config.prompt.max_prompt_tokens
        self.tokens: list[float] = []

    def act(self, situations: Sequence[Situation], *, seed: Sequence[int]) -> list[Decision]:
        """Decides as the agent does."""
        texts = [self.builder.build(situation.view).text for situation in situations]
        self.tokens += [min(self.longest, len(t) / CHARACTERS_PER_TOKEN) for t in texts]
        decisions: list[Decision] = self.agent.act(situations, seed=seed)
        return decisions
