"""Adapters: few weights are trained, the base is the reference, what is saved is a plain model."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proxmo.config import ModelConfig
from proxmo.training.adapters import add_adapters, export_model, has_adapters
from tests.fakes import rng, tiny_model
from tests.proxmo.training.test_learner import OPTIM, TEXTS, learner, sampled

torch = pytest.importorskip("torch")
pytest.importorskip("peft", reason="adapters need peft")

INPUT = [[5, 9, 12, 7, 6]]
ADVANTAGES = np.linspace(-1.0, 1.0, len(TEXTS))


def adapted(rank: int = 4) -> Any:
    return add_adapters(tiny_model(), ModelConfig(lora_rank=rank), seed=0)


def logits(model: Any) -> Any:
    with torch.no_grad():
        return model(input_ids=torch.tensor(INPUT)).logits


def trained(updates: int = 3, **config: Any) -> tuple[Any, dict[str, float]]:
    model = adapted()
    one = learner(model, replace(OPTIM, lr=1e-2, **config))
    for _ in range(updates):
        metrics = one.update(sampled(tiny_model()), ADVANTAGES, rng=rng())
    return model, metrics


def test_fresh_adapters_change_nothing_and_are_few():
    model = adapted()
    assert has_adapters(model) and not has_adapters(tiny_model())
    assert torch.equal(logits(model), logits(tiny_model()))
    weights = [w.numel() for w in model.parameters() if w.requires_grad]
    assert 0 < sum(weights) < sum(w.numel() for w in tiny_model().parameters())


def test_equal_seeds_give_equal_adapters_and_leave_the_global_generator_alone():
    state = torch.get_rng_state()
    one, other = adapted().state_dict(), adapted().state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert torch.equal(state, torch.get_rng_state())


def test_training_moves_the_adapters_and_not_the_base():
    model, _ = trained()
    assert not torch.allclose(logits(model), logits(tiny_model()), atol=1e-3)
    with model.disable_adapter():
        assert torch.equal(logits(model), logits(tiny_model()))


def test_the_base_is_the_reference_of_the_kl():
    _, metrics = trained(kl_coef=0.1)
    assert metrics["loss/kl"] > 0.0
    _, without = trained(kl_coef=0.0)
    assert without["loss/kl"] == 0.0


def test_what_is_exported_is_a_plain_model_that_says_the_same(tmp_path: Path):
    from transformers import AutoModelForCausalLM

    model, _ = trained()
    before = copy.deepcopy(model.state_dict())
    export_model(model, tmp_path)
    plain = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert not (tmp_path / "adapter_config.json").exists()
    assert torch.allclose(logits(plain), logits(model), atol=1e-5)
    # Exporting does not touch what is trained, not by a bit.
    assert all(torch.equal(before[n], w) for n, w in model.state_dict().items())


def test_a_learner_of_adapters_goes_on_from_its_state_to_the_bit():
    steps = sampled(tiny_model())
    first = learner(adapted())
    first.update(steps, ADVANTAGES, rng=rng())
    again = learner(adapted())
    again.load_state(copy.deepcopy(first.state()))
    for one in (first, again):
        one.update(steps, ADVANTAGES, rng=rng(5))
    one, other = first.model.state_dict(), again.model.state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)
