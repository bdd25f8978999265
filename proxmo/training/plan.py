"""What `proxmo train --dry-run` adds to the configuration: model, device, memory, tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import gymnasium

import proxmo_envs  # noqa: F401  registers the ids
from proxmo.config import Config
from proxmo.errors import UsageError
from proxmo.formats import count
from proxmo.training.architecture import FAMILIES, Architecture, find_architecture
from proxmo.training.estimate import Memory, measure_episodes, memory, most_tokens

GB = 1e9
# Assumed memory of a GPU if this machine has none.
_USUAL_GPU = 80 * GB
# Exists if NVIDIA's driver is loaded; asking torch costs seconds.
_DRIVER = Path("/dev/nvidiactl")


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
    lines = [*_model(config, model), *_device(config, gpus)]
    if model is not None:
        # vLLM in this process means a GPU, even if this machine has none.
        on_gpu = config.model.device != "cpu" and bool(gpus or config.rollout.engine == "vllm")
        needed = memory(config, model, on_gpu=on_gpu, nproc=nproc)
        lines += _memory(config, needed, gpus[0] if gpus else None, nproc)
    return [*lines, *_tokens(config, play)]


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


def _model(config: Config, model: Architecture | None) -> Iterator[str]:
    if model is None:
        yield (
            f"model: the sizes of {config.model.name} are not known here, and so neither the "
            f"memory: it is not in the cache, or no model of {', '.join(FAMILIES)}"
        )
        return
    needed = config.prompt.max_prompt_tokens + config.sampling.max_new_tokens
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
    yield f"{text}; {needed:,} of {model.context:,} tokens of context" if model.context else text


def _device(config: Config, gpus: list[float]) -> Iterator[str]:
    if config.model.device == "cpu":
        yield "device: cpu"
    elif gpus:
        yield f"device: {len(gpus)} GPUs here, the first of {gpus[0] / GB:.0f} GB"
    else:
        yield "device: no GPU here, so cpu on this machine"


def _memory(config: Config, needed: Memory, device: float | None, nproc: int) -> Iterator[str]:
    each = f" on each of {nproc} devices" if nproc > 1 else ""
    yield (
        f"memory: {_size(needed.update_peak)}{each} while training "
        f"({_parts({**needed.kept, **needed.updating})}), libraries not counted"
    )
    if not needed.vllm_share:
        more = f" ({_parts(needed.sampling)})" if needed.sampling else ", the sampler's not counted"
        yield f"memory: {_size(needed.sampling_peak)}{each} while sampling{more}"
        return
    whole = device or _USUAL_GPU
    share = needed.vllm_share * whole
    room = max(0.0, share - needed.kept["weights"]) / needed.cache_per_token
    yield (
        f"memory: {_size(needed.sampling_peak)}{each} while sampling, beside vLLM's "
        f"{_size(share)} ({config.rollout.gpu_memory:g} of {_size(whole)}): its weights, and keys "
        f"and values of {count(int(room))} tokens ({_size(needed.cache_per_token)} each)"
    )
    peak = max(needed.update_peak, needed.sampling_peak + share)
    if config.rollout.lag:
        peak = needed.update_peak + share
    if peak > whole:
        yield (
            f"memory: {_size(peak)} do not fit into {_size(whole)}: cut the optimiser's state "
            "(--nproc N --set model.parallel=fsdp), train adapters (model.lora_rank), lower "
            "rollout.gpu_memory or optim.micro_batch_tokens"
        )


def _tokens(config: Config, play: bool) -> Iterator[str]:
    name = config.env.id.rpartition(":")[2]
    spec = gymnasium.registry.get(name)  # an environment of the user's own after its import
    limit = config.env.max_steps or (spec.max_episode_steps if spec else None)
    episodes = config.rollout.tasks * config.rollout.group_size
    if limit is None:
        yield f"tokens: no upper bound, {name} has no step limit here (env.max_steps)"
    else:
        most = most_tokens(config, limit)
        yield (
            f"tokens: at most {count(most.total)} per iteration, {count(most.prompt)} of prompts "
            f"and {count(most.response)} of responses ({episodes} episodes of {limit} steps)"
        )
    if not play:
        return
    for player in ("expert", "random"):
        like = measure_episodes(config, player)
        if like is None:
            yield f"tokens: {name} cannot be played by the {player} player"
            continue
        expected = like.tokens(config)
        yield (
            f"tokens: about {count(expected.total)} per iteration, {count(expected.prompt)} of "
            f"prompts, {count(expected.response)} of responses, for an agent that plays like "
            f"the {player} one ({like.steps:.1f} steps an episode, prompts of {like.prompt:.0f}, "
            f"responses of {like.response:.0f} tokens)"
        )


def _parts(parts: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {_size(size)}" for name, size in parts.items())


def _size(size: float) -> str:
    for unit, scale in (("GB", GB), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size:.0f} bytes"
