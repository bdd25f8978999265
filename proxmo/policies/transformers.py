"""A Hugging Face causal language model as policy, on CPU or GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from proxmo.errors import DataError, MissingDependencyError, RolloutError, UsageError
from proxmo.policies.base import Response
from proxmo.policies.batching import Sample, collate, micro_batches
from proxmo.policies.memory import memory_advice

if TYPE_CHECKING:
    import torch


# Seconds the hub has to answer whether it has a model.
_HUB_TIMEOUT_S = 10.0


class TransformersPolicy:
    """Samples with `model.generate`; the model is the trainer's own, so no weights are copied.

    Args:
        model: a causal language model of transformers.
        tokenizer: its tokenizer, with a chat template.
        max_batch_tokens: prompts are generated for in chunks of at most this many tokens (padding
            and response included).
    """

    def __init__(self, model: Any, tokenizer: Any, *, max_batch_tokens: int = 65536) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.weight_version = 0
        self.max_batch_tokens = max_batch_tokens
        self.end_ids = end_token_ids(model, tokenizer)

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        temperature: float,
        max_new_tokens: int,
        seed: Sequence[int],
        seeds: Sequence[Sequence[int]] | None = None,
    ) -> list[Response]:
        """Samples one response per prompt, batched by length; see `Policy.generate`."""
        import torch

        generator = torch.Generator(device=self.model.device)
        generator.manual_seed(
            int(np.random.SeedSequence(list(seed)).generate_state(1, np.uint64)[0]) >> 1
        )
        source: torch.Generator | torch.Tensor = generator
        if seeds:
            own = [np.random.default_rng(list(one)).random(max_new_tokens) for one in seeds]
            source = torch.tensor(np.stack(own), device=self.model.device)
        longest: list[Sample] = [(prompt, range(max_new_tokens)) for prompt in prompts]
        responses: dict[int, Response] = {}
        for chunk in micro_batches(
            longest, range(len(prompts)), token_budget=self.max_batch_tokens
        ):
            rows = source[chunk] if isinstance(source, torch.Tensor) else source
            sampler = _Sampler(temperature, rows)
            made = self._generate_chunk([prompts[i] for i in chunk], max_new_tokens, sampler)
            responses.update(zip(chunk, made, strict=True))
        return [responses[i] for i in range(len(prompts))]

    def _generate_chunk(
        self,
        prompts: list[Sequence[int]],
        max_new_tokens: int,
        sampler: _Sampler,
    ) -> list[Response]:
        import torch

        pad = self.tokenizer.pad_token_id
        batch = collate([(prompt, ()) for prompt in prompts], pad_id=pad, device=self.model.device)
        advice = (
            "while sampling: lower rollout.max_live (evaluations: --workers) or the token limits"
        )
        with (
            memory_advice(RolloutError, advice),
            torch.inference_mode(),
            _plain(self.model),
        ):
            out = self.model.generate(
                input_ids=batch.ids,
                attention_mask=batch.attention,
                max_new_tokens=max_new_tokens,
                eos_token_id=list(self.end_ids),
                pad_token_id=pad,
                logits_processor=[sampler],
            )
        logprobs = torch.stack(sampler.logprobs, dim=1).cpu().numpy()
        rows = [_until_end(row, self.end_ids) for row in out[:, batch.ids.shape[1] :].tolist()]
        texts = self.tokenizer.batch_decode([ids for ids, _ in rows], skip_special_tokens=True)
        return [
            Response(
                tuple(ids),
                tuple(logprobs[i, : len(ids)].tolist()),
                text,
                reason,
                self.weight_version,
            )
            for i, ((ids, reason), text) in enumerate(zip(rows, texts, strict=True))
        ]


@contextmanager
def _plain(model: Any) -> Iterator[None]:
    """Disables dropout and the model's own generation settings.

    Penalties, suppressed tokens or beams would sample from another distribution than the one that
    is trained.
    """
    from transformers import GenerationConfig

    settings, was_training = model.generation_config, model.training
    model.generation_config = GenerationConfig()
    model.eval()
    try:
        yield
    finally:
        model.generation_config = settings
        model.train(was_training)


class _Sampler:
    """Logits processor that draws the token and leaves greedy search no other choice.

    This way the noise comes from our own generator instead of torch's global one, and we record the
    log-probability under exactly the distribution we sampled from.

    Args:
        temperature: of the softmax; 0 takes the likeliest token.
        source: a generator for all rows (Gumbel-max), or uniform draws (rows, tokens), with which
            a row's tokens do not depend on the other rows (inverse of the distribution function).
    """

    def __init__(self, temperature: float, source: torch.Generator | torch.Tensor) -> None:
        self.temperature = temperature
        self.source = source
        self.logprobs: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        import torch

        scores = scores.float()
        logprobs = torch.log_softmax(
            scores / self.temperature if self.temperature > 0 else scores, dim=-1
        )
        if self.temperature == 0:
            choice = logprobs.argmax(dim=-1, keepdim=True)
        elif isinstance(self.source, torch.Tensor):
            at = len(self.logprobs)
            below = logprobs.double().exp().cumsum(dim=-1)
            # The last sum is 1 except for rounding.
            drawn = self.source[:, at : at + 1] * below[:, -1:]
            choice = torch.searchsorted(below, drawn, right=True)
        else:
            noise = torch.empty_like(logprobs).exponential_(generator=self.source)
            keys = logprobs - noise.clamp_min_(1e-30).log()
            choice = keys.argmax(dim=-1, keepdim=True)
        self.logprobs.append(logprobs.gather(-1, choice).squeeze(-1))
        return torch.full_like(scores, -float("inf")).scatter(-1, choice, 0.0)


def _until_end(ids: list[int], end_ids: frozenset[int]) -> tuple[list[int], str]:
    """Cuts a generated row after its first end token; a row without one was cut by length."""
    for position, token in enumerate(ids):
        if token in end_ids:
            return ids[: position + 1], "stop"
    return ids, "length"


def end_token_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    """Every token that ends a turn: those of the generation config and the tokenizer's own."""
    configured = getattr(model.generation_config, "eos_token_id", None)
    ids = set(configured if isinstance(configured, list) else [configured]) | {
        tokenizer.eos_token_id
    }
    ids.discard(None)
    if not ids:
        raise UsageError(
            "the model names no end-of-turn token; set eos_token_id in its "
            "generation_config.json or its tokenizer"
        )
    return frozenset(ids)


def context_length(model: Any) -> int | None:
    """Most tokens of prompt and response together; None if the model does not say."""
    return getattr(model.config.get_text_config(), "max_position_embeddings", None)


def check_context(model: Any, *, prompt_tokens: int, new_tokens: int) -> None:
    """Raises UsageError if the longest prompt and response exceed the model's context."""
    context = context_length(model)
    if context is not None and prompt_tokens + new_tokens > context:
        raise UsageError(
            f"prompts of {prompt_tokens} and responses of {new_tokens} tokens exceed the model's "
            f"context of {context}; lower prompt.max_prompt_tokens or sampling.max_new_tokens "
            "(--prompt-tokens or --max-tokens of an evaluation)"
        )


def _read_model(name: str, **options: Any) -> tuple[Any, Any]:
    from huggingface_hub import HfApi, constants
    from transformers import AutoModelForCausalLM, AutoTokenizer

    def read(*, local_files_only: bool) -> tuple[Any, Any]:
        tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=local_files_only)
        # transformers makes an empty tokenizer where the files are missing.
        if not tokenizer.encode("look", add_special_tokens=False):
            raise DataError("its tokenizer has no tokens: the files of one are missing")
        # Its annotations leave out the second of the pair.
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            name, local_files_only=local_files_only, output_loading_info=True, **options
        )
        model, found = loaded
        if found["missing_keys"]:  # transformers draws them at random, with a warning
            raise DataError(
                f"{len(found['missing_keys'])} of its weights are missing, among them "
                f"{min(found['missing_keys'])}"
            )
        return model, tokenizer

    try:
        return read(local_files_only=True)
    except Exception:  # missing or broken here, in any way: the hub may have it
        if Path(name).exists() or constants.HF_HUB_OFFLINE:
            raise
    HfApi().model_info(name, timeout=_HUB_TIMEOUT_S)
    return read(local_files_only=False)


def load_model(
    name: str, *, device: str = "auto", dtype: str = "auto", load_in_4bit: bool = False
) -> tuple[Any, Any]:
    """Loads a causal language model and its tokenizer from a directory or by hub id.

    Uses the local cache if it holds the model. Otherwise asks the hub once, so that without a
    network the error comes in seconds and not after all the retries of a download.

    Raises:
        DataError: nothing can be loaded under that name, or model and tokenizer do not fit.
        UsageError: this machine does not have the GPU.
        MissingDependencyError: `load_in_4bit` needs bitsandbytes, which is not installed.
    """
    import torch

    where = torch.device(
        ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    )
    gpus = torch.cuda.device_count()
    if where.type == "cuda" and (where.index or 0) >= gpus:
        raise UsageError(f"device is {device!r}, but torch sees {gpus} GPUs; use cpu or auto")
    chosen = ("bfloat16" if where.type == "cuda" else "float32") if dtype == "auto" else dtype
    if "/" in name and not name.count("/") == 1 and not Path(name).exists():
        raise DataError(f"model directory {name!r} does not exist")
    options = _four_bits(where, getattr(torch, chosen)) if load_in_4bit else {}
    try:
        model, tokenizer = _read_model(name, dtype=getattr(torch, chosen), **options)
    except Exception as cause:  # safetensors and tokenizers raise no narrower class
        reason = (str(cause).strip() or type(cause).__name__).splitlines()[0]
        raise DataError(
            f"no model can be loaded from {name!r}: expected a directory with config.json, weights "
            f"and tokenizer, or a Hugging Face hub id that is reachable or cached ({reason})"
        ) from cause
    if tokenizer.eos_token_id is None:
        tokenizer.eos_token_id = min(end_token_ids(model, tokenizer))
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token_id = tokenizer.eos_token_id
    rows = model.get_input_embeddings().weight.shape[0]
    if len(tokenizer) > rows:
        raise DataError(
            f"the tokenizer of {name!r} knows {len(tokenizer)} tokens and its model {rows}: they "
            "do not belong together"
        )
    module: torch.nn.Module = model
    return (module if load_in_4bit else module.to(where)), tokenizer


def _four_bits(device: torch.device, dtype: torch.dtype) -> dict[str, Any]:
    """How transformers loads a model in 4 bits (Dettmers et al. 2023, arXiv 2305.14314)."""
    import importlib.util

    from transformers import BitsAndBytesConfig

    if importlib.util.find_spec("bitsandbytes") is None:
        raise MissingDependencyError(
            "model.load_in_4bit needs bitsandbytes: pip install 'proxmo[lora]'"
        )
    return {
        "quantization_config": BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype
        ),
        "device_map": {"": device},
    }
