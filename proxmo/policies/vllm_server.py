r"""A vLLM server elsewhere on this machine or file system: tokens by HTTP, weights by path.

Started with the flags of `SERVER_FLAGS` and `VLLM_SERVER_DEV_MODE=1`, for example

    VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --logprobs-mode processed_logprobs \
        --worker-extension-cls proxmo.policies.vllm_worker.WeightReceiver
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from proxmo.errors import MissingDependencyError, RolloutError
from proxmo.policies.base import Response
from proxmo.policies.engines import EngineRequest

SERVER_FLAGS = (
    "--worker-extension-cls proxmo.policies.vllm_worker.WeightReceiver "
    "--logprobs-mode processed_logprobs"
)
# Most requests in flight, and seconds a single one may take.
CONCURRENCY = 256
TIMEOUT_S = 600.0


class VllmServerPolicy:
    """Samples with a running `vllm serve`.

    Args:
        request: settings; `engine_url` is the address of the server, without `/v1`.

    Raises:
        MissingDependencyError: the `openai` client is not installed.
        RolloutError: no server answers.
    """

    concurrent = True
    shared = True

    def __init__(self, request: EngineRequest) -> None:
        try:
            import openai
        except ImportError as cause:
            raise MissingDependencyError(
                "rollout.engine = vllm-server needs the client: pip install 'proxmo[api]'"
            ) from cause
        self.url = str(request.rollout.engine_url).rstrip("/")
        self.tokenizer = request.tokenizer
        self.end_ids = frozenset(request.end_ids)
        self.weight_version = 0
        self._client = openai.OpenAI(
            base_url=f"{self.url}/v1", api_key="unused", timeout=TIMEOUT_S, max_retries=2
        )
        self._failure: type[Exception] = openai.OpenAIError
        self._pool = ThreadPoolExecutor(CONCURRENCY, thread_name_prefix="vllm-request")
        try:
            self.model = self._client.models.list().data[0].id
        except openai.OpenAIError as cause:
            raise RolloutError(
                f"no vLLM server answers at {self.url} ({cause}); start one with "
                f"`VLLM_SERVER_DEV_MODE=1 vllm serve MODEL {SERVER_FLAGS}`"
            ) from cause

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
        asked = [
            self._pool.submit(self._respond, prompt, temperature, max_new_tokens, own)
            for prompt, own in zip(prompts, seeds, strict=True)
        ]
        return [one.result() for one in asked]

    def _respond(
        self, prompt: Sequence[int], temperature: float, max_new_tokens: int, seed: Sequence[int]
    ) -> Response:
        version = self.weight_version
        try:
            answer = self._client.completions.create(
                model=self.model,
                prompt=list(prompt),
                temperature=temperature,
                max_tokens=max_new_tokens,
                logprobs=0,
                seed=int(np.random.SeedSequence(list(seed)).generate_state(1)[0] >> 1),
                extra_body={
                    "stop_token_ids": sorted(self.end_ids),
                    "ignore_eos": True,
                    "return_token_ids": True,
                },
            )
        except self._failure as cause:
            return Response((), (), "", "error", version, error=f"the vLLM server failed: {cause}")
        choice: Any = answer.choices[0]
        ids = tuple(choice.token_ids)
        return Response(
            ids=ids,
            logprobs=tuple(choice.logprobs.token_logprobs),
            text=self.tokenizer.decode(list(ids), skip_special_tokens=True),
            finish_reason="stop" if ids and ids[-1] in self.end_ids else "length",
            weight_version=version,
        )

    def load_weights(self, directory: Path, version: int) -> None:
        """Lets the server read safetensors from a shared directory; responses carry `version`.

        Raises:
            RolloutError: the server refuses, or runs without its development routes.
        """
        self._post("/pause?mode=wait")
        self._post(
            "/collective_rpc", {"method": "proxmo_load_weights", "args": [str(directory.resolve())]}
        )
        self._post("/reset_prefix_cache")
        self._post("/resume")
        self.weight_version = version

    def sleep(self) -> None:
        """Does nothing: the server has its own GPU."""

    def wake(self) -> None:
        """Does nothing; see `sleep`."""

    def close(self) -> None:
        """Ends the connections; the server keeps running."""
        self._pool.shutdown()
        self._client.close()

    def _post(self, route: str, body: dict[str, Any] | None = None) -> None:
        try:
            self._client.with_options(base_url=self.url).post(
                route, cast_to=type(None), body=body or {}
            )
        except self._failure as cause:
            raise RolloutError(
                f"the vLLM server at {self.url} does not take new weights ({route}: {cause}); it "
                f"has to run with VLLM_SERVER_DEV_MODE=1 and `{SERVER_FLAGS}`"
            ) from cause
