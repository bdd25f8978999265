"""Out of memory is one line that names the setting, on the CPU as on a GPU."""

from __future__ import annotations

import pytest

from proxmo.errors import RolloutError
from proxmo.policies.memory import memory_advice
from proxmo.policies.transformers import TransformersPolicy
from tests.fakes import tiny_model, tiny_tokenizer

torch = pytest.importorskip("torch")


def test_the_full_memory_of_a_cpu_is_told_from_other_errors():
    told = pytest.raises(RolloutError, match=r"out of memory here: do this \(.*allocate memory")
    with told, memory_advice(RolloutError, "here: do this"):
        torch.empty(10**15)
    with pytest.raises(RuntimeError, match="shapes cannot"), memory_advice(RolloutError, ""):
        raise RuntimeError("shapes cannot be multiplied")


@pytest.mark.parametrize("error", [MemoryError(), torch.OutOfMemoryError("CUDA out of memory")])
def test_so_is_that_of_python_and_of_a_gpu(error: Exception):
    told = pytest.raises(RolloutError, match="out of memory here")
    with told, memory_advice(RolloutError, "here"):
        raise error


def test_a_sampler_without_memory_names_what_to_lower(monkeypatch: pytest.MonkeyPatch):
    model = tiny_model()

    def full(**_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    monkeypatch.setattr(model, "generate", full)
    policy = TransformersPolicy(model, tiny_tokenizer())
    with pytest.raises(RolloutError, match="while sampling: lower rollout.max_live"):
        policy.generate([[5]], temperature=1.0, max_new_tokens=2, seed=(0,))
