"""Micro-batches, and what a model says about the responses in them."""

from __future__ import annotations

from typing import Any

import pytest

from proxmo.policies.batching import Sample, collate, micro_batches, response_logprobs
from tests.fakes import rng, tiny_model

torch = pytest.importorskip("torch")


def samples_of(lengths: list[tuple[int, int]], seed: int = 0) -> list[Sample]:
    draw = rng(seed)
    return [
        (draw.integers(5, 22, size=p).tolist(), draw.integers(5, 22, size=r).tolist())
        for p, r in lengths
    ]


def test_prompts_end_and_responses_begin_in_the_same_column():
    batch = collate([([5, 6, 7], [8]), ([9], [10, 11])], pad_id=0, device="cpu")
    assert batch.ids.tolist() == [[5, 6, 7, 8, 0], [0, 0, 9, 10, 11]]
    assert batch.attention.tolist() == [[1, 1, 1, 1, 0], [0, 0, 1, 1, 1]]
    assert batch.response_mask.tolist() == [[True, False], [True, True]]
    assert batch.response_ids.tolist() == [[8, 0], [10, 11]]


def test_positions_count_real_tokens_only():
    batch = collate([([5, 6, 7], [8]), ([9], [10, 11])], pad_id=0, device="cpu")
    assert batch.positions[0, :4].tolist() == [0, 1, 2, 3]
    assert batch.positions[1].tolist() == [0, 0, 0, 1, 2]


def test_a_padding_token_inside_a_response_is_a_token_like_any_other():
    batch = collate([([5], [0, 0]), ([5, 6], [7])], pad_id=0, device="cpu")
    assert batch.response_mask.tolist() == [[True, True], [True, False]]


@pytest.mark.parametrize("budget", [1, 12, 30, 100, 10_000])
def test_micro_batches_hold_every_row_once_and_stay_within_the_budget(budget: int):
    samples = samples_of([(p, r) for p in (1, 4, 9, 30) for r in (1, 2, 7)])
    rows = [11, 0, 3, 7, 5, 2]
    batches = list(micro_batches(samples, rows, token_budget=budget))
    assert sorted(i for batch in batches for i in batch) == sorted(rows)
    for batch in batches:
        width = max(len(samples[i][0]) for i in batch) + max(len(samples[i][1]) for i in batch)
        assert len(batch) == 1 or len(batch) * width <= budget


def test_no_rows_make_no_batch():
    assert list(micro_batches(samples_of([(1, 1)]), [], token_budget=10)) == []


def test_a_batch_gives_the_log_probabilities_of_each_sample_alone():
    model = tiny_model()
    samples = samples_of([(3, 4), (12, 1), (1, 6)])
    together, _ = response_logprobs(
        model, collate(samples, pad_id=0, device="cpu"), temperature=1.0
    )
    for row, (prompt, response) in enumerate(samples):
        logits = model(input_ids=torch.tensor([list(prompt) + list(response)])).logits[0]
        expected = torch.log_softmax(logits, -1)[len(prompt) - 1 : -1].gather(
            -1, torch.tensor(response).unsqueeze(-1)
        )
        assert torch.allclose(together[row, : len(response)], expected[:, 0], atol=1e-5)


def test_the_temperature_divides_the_logits():
    model = tiny_model()
    batch = collate(samples_of([(3, 2)]), pad_id=0, device="cpu")
    logits = model(input_ids=batch.ids).logits[:, 2:-1]
    _, distribution = response_logprobs(model, batch, temperature=0.5)
    assert torch.allclose(distribution, torch.log_softmax(logits / 0.5, -1), atol=1e-5)


def test_a_model_that_ignores_logits_to_keep_gives_the_same():
    class Ignores:
        def __init__(self, model: Any) -> None:
            self.model = model

        def __call__(self, *, logits_to_keep: int, **arguments: Any) -> Any:
            return self.model(**arguments)

    model = tiny_model()
    batch = collate(samples_of([(3, 4), (12, 1)]), pad_id=0, device="cpu")
    expected, _ = response_logprobs(model, batch, temperature=1.0)
    got, _ = response_logprobs(Ignores(model), batch, temperature=1.0)
    assert torch.allclose(got, expected, atol=1e-6)
