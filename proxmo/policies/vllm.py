"""vLLM in this process: continuous batching, prefix caching, weights replaced in place.

The engine's event loop has its own thread, so that many threads may call at the same time and each
request returns as soon as it is done.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from proxmo.errors import MissingDependencyError, RolloutError
from proxmo.policies.base import Response
from proxmo.policies.engines import EngineRequest

T = TypeVar("T")


class VllmPolicy:
    """Samples with an `AsyncLLM` engine.

    Args:
        request: settings; `engine_options` are further arguments of vLLM's `AsyncEngineArgs`.

    Raises:
        MissingDependencyError: vLLM is not installed.
        RolloutError: the engine does not start.
    """

    # Responses come one by one, so every episode can advance on its own.
    concurrent = True

    def __init__(self, request: EngineRequest) -> None:
        # vLLM prints a lot; its errors still come through.
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
        try:
            from vllm import AsyncEngineArgs
            from vllm.v1.engine.async_llm import AsyncLLM
        except ImportError as cause:
            raise MissingDependencyError(
                f"rollout.engine = vllm needs vLLM ({cause}): pip install 'proxmo[vllm]' in an "
                "environment of its own"
            ) from cause
        self.tokenizer = request.tokenizer
        self.weight_version = 0
        self.end_ids = frozenset(request.end_ids)
        self._numbers = itertools.count()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="vllm", daemon=True)
        self._thread.start()
        arguments: dict[str, Any] = {
            "model": request.source,
            "skip_tokenizer_init": True,
            "dtype": request.dtype,
            "max_model_len": request.max_tokens,
            "gpu_memory_utilization": request.rollout.gpu_memory,
            "enable_prefix_caching": True,
            # Log-probabilities of the distribution sampled from, temperature included.
            "logprobs_mode": "processed_logprobs",
            "worker_extension_cls": "proxmo.policies.vllm_worker.WeightReceiver",
            "disable_log_stats": True,
            "enable_sleep_mode": request.device == "cuda" and request.rollout.lag == 0,
            **request.rollout.engine_options,
        }

        async def start() -> Any:
            return AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments))

        try:
            self.engine = self._call(start())
        except Exception as cause:  # vLLM has no error class for a failed start
            self._stop_loop()
            raise RolloutError(f"vLLM does not start with {request.source!r}: {cause}") from cause

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        temperature: float,
        max_new_tokens: int,
        seed: Sequence[int],
        seeds: Sequence[Sequence[int]] | None = None,
    ) -> list[Response]:
        """Samples one response per prompt; see `Policy.generate`."""
        if seeds is None:
            seeds = [(*seed, i) for i in range(len(prompts))]

        async def respond_to_all() -> list[Response]:
            return await asyncio.gather(
                *(
                    self._respond(prompt, temperature, max_new_tokens, own)
                    for prompt, own in zip(prompts, seeds, strict=True)
                )
            )

        return self._call(respond_to_all())

    async def _respond(
        self, prompt: Sequence[int], temperature: float, max_new_tokens: int, seed: Sequence[int]
    ) -> Response:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        settings = SamplingParams(
            temperature=temperature,
            max_tokens=max_new_tokens,
            logprobs=0,  # of the sampled token alone
            seed=int(np.random.SeedSequence(list(seed)).generate_state(1)[0]),
            stop_token_ids=sorted(self.end_ids),
            # Only those end a turn; a generation_config must not change the distribution.
            ignore_eos=True,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        version = self.weight_version
        request = {"prompt_token_ids": list(prompt)}
        async for output in self.engine.generate(request, settings, str(next(self._numbers))):
            final = output.outputs[0]
        ids = tuple(final.token_ids)
        return Response(
            ids=ids,
            logprobs=tuple(
                table[token].logprob for token, table in zip(ids, final.logprobs, strict=True)
            ),
            text=self.tokenizer.decode(list(ids), skip_special_tokens=True),
            finish_reason="stop" if ids and ids[-1] in self.end_ids else "length",
            weight_version=version,
        )

    def load_weights(self, directory: Path, version: int) -> None:
        """Loads the safetensors in a directory; later responses carry `version`.

        No request may be in flight. The prefix cache belongs to the old weights and is dropped.
        """

        async def load() -> None:
            await self.engine.collective_rpc("proxmo_load_weights", args=(str(directory),))
            await self.engine.reset_prefix_cache()

        self._call(load())
        self.weight_version = version

    def sleep(self) -> None:
        """Frees the GPU for training: weights go to the host, the cache is dropped."""
        self._call(self.engine.sleep(level=1))

    def wake(self) -> None:
        """Takes the GPU back."""
        self._call(self.engine.wake_up())

    def close(self) -> None:
        """Ends the engine's processes."""
        if not self._loop.is_closed():
            self._call(self._shutdown())
            self._stop_loop()

    async def _shutdown(self) -> None:
        self.engine.shutdown()
        # Its destructor needs modules that are gone at interpreter exit.
        del self.engine

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the engine's loop and waits for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _stop_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
