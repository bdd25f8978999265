"""The policy's own view of its prompts as state of the credit assignment."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from proxmo.config import CreditConfig
from proxmo.credit import needs_policy
from proxmo.training import prompt_embeddings as module
from proxmo.training.loop import Trainer
from proxmo.training.prompt_embeddings import prompt_embeddings
from tests.fakes import counter_config, dropout_model, save_tiny_model, tiny_model

torch = pytest.importorskip("torch")

PROMPTS = [(5, 6, 7, 8), (9, 10), (5, 6, 7, 8), (11,)]


def embed(model, prompts=PROMPTS, budget=1000):
    return prompt_embeddings(model, prompts, pad_id=0, token_budget=budget)


@pytest.mark.parametrize("make", [tiny_model, dropout_model])
def test_it_is_the_mean_of_the_last_hidden_states_whatever_the_padding(make):
    model = make().train()
    found = embed(model)
    assert model.training
    model.eval()
    for prompt, vector in zip(PROMPTS, found, strict=True):
        with torch.no_grad():
            states = model(torch.tensor([prompt]), output_hidden_states=True).hidden_states[-1]
        np.testing.assert_allclose(vector, states[0].mean(0).numpy(), atol=1e-5)


def test_the_token_budget_changes_nothing_but_the_batches():
    model = tiny_model()
    np.testing.assert_allclose(embed(model, budget=1), embed(model), atol=1e-6)


def test_equal_prompts_are_read_once(monkeypatch):
    read = []
    collate = module.collate
    monkeypatch.setattr(
        module, "collate", lambda samples, **how: read.extend(samples) or collate(samples, **how)
    )
    found = embed(tiny_model())
    assert len(read) == 3
    np.testing.assert_array_equal(found[0], found[2])


def test_methods_ask_for_the_policy_by_embedding_or_matcher():
    assert needs_policy({"embedding": "policy"}) and needs_policy({"matcher": "policy"})
    assert not needs_policy({"embedding": "tfidf", "tau": 0.1})


def test_a_run_compares_states_by_its_own_policy(tmp_path):
    credit = CreditConfig(method="proxmo", options={"embedding": "policy"})
    config = counter_config(save_tiny_model(tmp_path / "model"), credit=credit)
    config = replace(config, optim=replace(config.optim, iterations=1))
    Trainer(config, out=tmp_path / "run").run()
    (row,) = map(json.loads, (tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
    assert row["credit/effective_neighbours"] > 1
    assert 0 < row["time/credit_share"] < 1
    assert row["time/credit_s"] < row["time/training_s"]
