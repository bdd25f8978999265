"""Learning from given responses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from proxmo.policies.batching import Sample, collate
from proxmo.training.sft import SftConfig, fit, sft_loss
from tests.fakes import rng, tiny_model

torch = pytest.importorskip("torch")

SAMPLES: list[Sample] = [([5, 6, 7], [8, 9]), ([10], [11, 12, 3]), ([5, 13, 14, 15], [16])]


def log_probability(model: Any, sequence: list[int], first: int, last: int) -> list[float]:
    """Of the tokens first..last-1 of an unpadded sequence, each given those before it."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([sequence])).logits[0].double()
    distribution = torch.log_softmax(logits, -1)
    return [distribution[at - 1, sequence[at]].item() for at in range(first, last)]


@pytest.mark.parametrize("prompt_weight", [0.0, 0.3, 1.0])
def test_the_loss_is_the_mean_over_response_tokens_and_a_share_of_that_over_prompt_tokens(
    prompt_weight: float,
):
    model = tiny_model()
    response, prompt = [], []
    for before, after in SAMPLES:
        both = [*before, *after]
        response += log_probability(model, both, len(before), len(both))
        prompt += log_probability(model, both, 1, len(before))
    batch = collate(SAMPLES, pad_id=0, device="cpu")
    loss, response_loss = sft_loss(model, batch, prompt_weight=prompt_weight)
    assert response_loss.item() == pytest.approx(-np.mean(response), rel=1e-5)
    expected = -np.mean(response) - prompt_weight * np.mean(prompt)
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def config(steps: int = 30, **changes: Any) -> SftConfig:
    return SftConfig(steps=steps, batch_size=4, lr=1e-2, warmup_steps=2, **changes)


@pytest.mark.parametrize("muon", [None, 0.02])
def test_a_model_learns_the_responses_it_is_shown(muon: float | None):
    model = tiny_model()
    heard: list[tuple[int, float]] = []
    end = fit(
        model,
        SAMPLES,
        config(60, muon_lr=muon),
        pad_id=0,
        rng=rng(),
        progress=lambda step, loss: heard.append((step, loss)),
    )
    assert [step for step, _ in heard] == list(range(1, 61)) and heard[-1][1] == end
    batch = collate(SAMPLES, pad_id=0, device="cpu")
    with torch.no_grad():
        _, after = sft_loss(model, batch, prompt_weight=0.0)
        _, before = sft_loss(tiny_model(), batch, prompt_weight=0.0)
    assert after < 0.2 * before
    assert math.isfinite(end)
    assert not model.training


def test_equal_generators_give_equal_models():
    def trained(seed: int) -> Any:
        model = tiny_model()
        fit(model, SAMPLES, config(5), pad_id=0, rng=rng(seed))
        return torch.cat([w.detach().flatten() for w in model.parameters()])

    assert torch.equal(trained(1), trained(1))
    assert not torch.equal(trained(1), trained(2))
