"""What one update does to a model."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from proxmo.config import OptimConfig
from proxmo.errors import TrainingError
from proxmo.policies.batching import collate, response_logprobs
from proxmo.policies.transformers import TransformersPolicy
from proxmo.training.learner import Learner
from proxmo.types import Step
from tests.fakes import dropout_model, rng, tiny_model, tiny_tokenizer

torch = pytest.importorskip("torch")

# Without weight decay nothing but the objective moves a weight.
OPTIM = OptimConfig(lr=1e-3, kl_coef=0.0, weight_decay=0.0, max_grad_norm=100.0)
TEXTS = ["now 1", "to 12 now 3 up", "0", "now 0 to 1"] * 3


def sampled(model: Any, texts: list[str] = TEXTS, temperature: float = 1.0) -> list[Step]:
    """Steps whose responses the model itself gave."""
    tokenizer = tiny_tokenizer()
    prompts = [tokenizer(text)["input_ids"] for text in texts]
    policy = TransformersPolicy(model, tokenizer)
    responses = policy.generate(prompts, temperature=temperature, max_new_tokens=6, seed=(1,))
    return [
        Step(0, "", tuple(p), r.ids, r.logprobs, r.text, r.text, True, "ok", 0.0, 0)
        for p, r in zip(prompts, responses, strict=True)
    ]


def learner(model: Any, config: OptimConfig = OPTIM, reference: Any = None) -> Learner:
    return Learner(model, reference, config, temperature=1.0, pad_id=0)


def log_likelihood(model: Any, steps: list[Step]) -> np.ndarray:
    batch = collate([(s.prompt_ids, s.response_ids) for s in steps], pad_id=0, device="cpu")
    with torch.no_grad():
        logprobs, _ = response_logprobs(model, batch, temperature=1.0)
    return (logprobs * batch.response_mask).sum(-1).numpy()


def weights(model: Any) -> Any:
    return torch.cat([w.detach().flatten().float() for w in model.parameters()])


def update(model: Any, config: OptimConfig = OPTIM, advantages: Any = None, **options: Any) -> Any:
    """One update on what an untrained model says; returns (weights afterwards, metrics)."""
    steps = sampled(tiny_model())
    if advantages is None:
        advantages = np.linspace(-1.0, 1.0, len(steps))
    metrics = learner(model, config, **options).update(steps, advantages, rng=rng(3))
    return weights(model), metrics


def test_repeated_updates_tell_good_responses_from_bad_ones():
    model = tiny_model()
    steps = sampled(model)
    advantages = np.where(np.arange(len(steps)) % 2 == 0, 1.0, -1.0)
    before = log_likelihood(model, steps)
    trained = learner(model, replace(OPTIM, clip_low=0.9, clip_high=9.0))
    for _ in range(10):
        trained.update(steps, advantages, rng=rng())
    gained = log_likelihood(model, steps) - before
    assert gained[advantages > 0].min() > 0 > gained[advantages < 0].max()


@pytest.mark.parametrize(
    ("budget", "aggregation"),
    [(1, "token"), (40, "token"), (97, "token"), (40, "sequence"), (40, "constant")],
)
def test_the_micro_batches_do_not_change_the_update(budget: int, aggregation: str):
    config = replace(OPTIM, aggregation=aggregation)
    whole, metrics = update(tiny_model(), replace(config, micro_batch_tokens=100_000))
    split, split_metrics = update(tiny_model(), replace(config, micro_batch_tokens=budget))
    assert torch.allclose(whole, split, atol=1e-6, rtol=0)
    assert (whole - weights(tiny_model())).abs().max() > 1e-4
    for name, value in metrics.items():
        assert split_metrics[name] == pytest.approx(value, abs=1e-5), name


@pytest.mark.parametrize("budget", [1, 40])
def test_every_token_of_a_minibatch_weighs_the_same(budget: int):
    """The gradient is that of the mean over all tokens, however long their responses are."""
    model = tiny_model()
    steps = sampled(model)
    assert len({len(s.response_ids) for s in steps}) > 1
    advantages = np.linspace(-1.0, 2.0, len(steps))
    batch = collate([(s.prompt_ids, s.response_ids) for s in steps], pad_id=0, device="cpu")
    logprobs, _ = response_logprobs(model, batch, temperature=1.0)
    weight = torch.tensor(advantages, dtype=torch.float32).unsqueeze(-1) * batch.response_mask
    (-(logprobs * weight).sum() / batch.response_mask.sum()).backward()
    expected = math.sqrt(sum(float(w.grad.square().sum()) for w in model.parameters()))

    config = replace(OPTIM, micro_batch_tokens=budget)
    metrics = learner(tiny_model(), config).update(steps, advantages, rng=rng())
    assert metrics["loss/grad_norm"] == pytest.approx(expected, rel=1e-4)


def test_a_step_of_no_advantage_counts_as_tokens_but_pulls_nowhere():
    model = tiny_model()
    steps = sampled(model)
    advantages = np.zeros(len(steps))
    advantages[2] = 1.0
    alone = learner(tiny_model()).update(steps[2:3], np.array([1.0]), rng=rng())
    among = learner(tiny_model()).update(steps, advantages, rng=rng())
    share = len(steps[2].response_ids) / sum(len(s.response_ids) for s in steps)
    assert among["loss/grad_norm"] == pytest.approx(share * alone["loss/grad_norm"], rel=1e-4)


@pytest.mark.parametrize(
    ("changes", "reference", "passes"),
    [({}, False, 3), ({"entropy_coef": 0.1}, False, 12), ({"kl_coef": 0.1}, True, 12)],
)
def test_steps_without_advantage_are_left_out_only_where_nothing_else_pulls_at_them(
    changes: dict[str, float], reference: bool, passes: int, monkeypatch: pytest.MonkeyPatch
):
    seen: list[int] = []
    original = Learner._collate

    def spy(self: Learner, steps: list[Step], *rest: Any) -> Any:
        seen.append(len(steps))
        return original(self, steps, *rest)

    monkeypatch.setattr(Learner, "_collate", spy)
    advantages = np.array([1.0] * 3 + [0.0] * 9)
    other = tiny_model() if reference else None
    update(tiny_model(), replace(OPTIM, **changes), advantages, reference=other)
    assert sum(seen) == passes


def test_without_any_advantage_nothing_moves_and_nothing_is_claimed_to_be_measured():
    after, metrics = update(tiny_model(), advantages=np.zeros(len(TEXTS)))
    assert torch.equal(after, weights(tiny_model()))
    assert metrics["loss/grad_norm"] == metrics["loss/policy"] == 0.0
    assert math.isnan(metrics["loss/entropy"]) and math.isnan(metrics["loss/sampler_gap"])


def test_sampler_and_trainer_agree_in_the_first_pass():
    _, metrics = update(tiny_model())
    assert metrics["loss/sampler_gap"] < 1e-5
    assert metrics["loss/clip_fraction"] == 0.0
    # Where all ratios are 1 the loss is minus the token mean of the advantage.
    steps = sampled(tiny_model())
    lengths = np.array([len(s.response_ids) for s in steps])
    advantages = np.linspace(-1.0, 2.0, len(steps))
    for kind, weight in (("token", lengths), ("sequence", np.ones(len(steps)))):
        _, metrics = update(tiny_model(), replace(OPTIM, aggregation=kind), advantages)
        mean = (advantages * weight).sum() / weight.sum()
        assert metrics["loss/policy"] == pytest.approx(-mean, abs=1e-6)


@pytest.mark.parametrize("checkpointing", [False, True])
def test_dropout_is_off_in_an_update_as_it_was_in_sampling(checkpointing: bool):
    model = dropout_model().train()
    if checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    steps = sampled(model)
    metrics = learner(model).update(steps, np.ones(len(steps)), rng=rng())
    assert metrics["loss/sampler_gap"] < 1e-5


def test_later_passes_are_clipped_and_see_that_the_policy_has_moved():
    _, metrics = update(tiny_model(), replace(OPTIM, lr=1e-2, epochs=4, minibatches=2))
    assert metrics["loss/sampler_gap"] > 0.01
    assert metrics["loss/clip_fraction"] > 0.0


def test_passes_and_minibatches_make_as_many_optimiser_steps():
    model = tiny_model()
    config = replace(OPTIM, epochs=3, minibatches=2, warmup_steps=12, lr=1.2e-3)
    trained = learner(model, config)
    metrics = trained.update(sampled(model), np.ones(len(TEXTS)), rng=rng())
    # Warm-up is linear: after 6 steps the seventh of 12 rates is due.
    assert metrics["optim/lr"] == pytest.approx(1.2e-3 * 7 / 12)
    # There are never more minibatches than steps.
    few = learner(model, replace(config, minibatches=50))
    few.update(sampled(model)[:2], np.ones(2), rng=rng())
    assert few.schedule.last_epoch == 6


def test_the_generator_decides_which_steps_share_a_minibatch():
    config, advantages = replace(OPTIM, minibatches=3), np.linspace(-1, 1, len(TEXTS))

    def trained(seed: int) -> Any:
        model = tiny_model()
        learner(model, config).update(sampled(tiny_model()), advantages, rng=rng(seed))
        return weights(model)

    assert torch.equal(trained(1), trained(1))
    assert not torch.equal(trained(1), trained(2))


def test_a_reference_holds_the_policy_back():
    reference = tiny_model().requires_grad_(False)
    config = replace(OPTIM, lr=1e-2, epochs=8, clip_low=0.9, clip_high=99.0)
    free, held = tiny_model(), tiny_model()
    _, loose = update(free, config)
    _, tight = update(held, replace(config, kl_coef=5.0), reference=reference)
    assert tight["loss/kl"] > 0.0 == loose["loss/kl"]
    steps = sampled(tiny_model())
    start = log_likelihood(tiny_model(), steps)
    moved = [np.abs(log_likelihood(model, steps) - start).mean() for model in (free, held)]
    assert moved[1] < 0.5 * moved[0]
    assert torch.equal(weights(reference), weights(tiny_model()))


def test_an_entropy_bonus_alone_makes_the_policy_less_sure():
    model = tiny_model()
    steps = sampled(model)
    trained = learner(model, replace(OPTIM, entropy_coef=1.0))
    entropy = [
        trained.update(steps, np.zeros(len(steps)), rng=rng())["loss/entropy"] for _ in range(6)
    ]
    assert entropy[-1] > entropy[0] + 0.01


def test_the_gradient_is_clipped_to_its_largest_norm():
    clipped, metrics = update(tiny_model(), replace(OPTIM, max_grad_norm=1e-9))
    _, free = update(tiny_model(), OPTIM)
    assert metrics["loss/grad_norm"] == pytest.approx(free["loss/grad_norm"])
    # Adam divides by |g| + 1e-8: gradients far below that hardly move a weight.
    assert (clipped - weights(tiny_model())).abs().max() < 0.2 * OPTIM.lr


def test_updates_too_small_for_bfloat16_add_up():
    model = tiny_model().to(torch.bfloat16)
    steps = sampled(model)
    trained = learner(model, replace(OPTIM, lr=1e-5))
    before = weights(model)
    trained.update(steps, np.linspace(-1, 1, len(steps)), rng=rng())
    # One step of 1e-5 is lost on a weight of 0.1, whose neighbours are 5e-4 away ...
    large = (before.abs() > 0.07) & (before.abs() < 0.12)
    assert torch.equal(weights(model)[large], before[large])
    for _ in range(40):
        trained.update(steps, np.linspace(-1, 1, len(steps)), rng=rng())
    # ... and 40 of them are not.
    assert (weights(model)[large] != before[large]).float().mean() > 0.2
    assert next(model.parameters()).dtype == torch.bfloat16


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_learner_goes_on_from_its_state_to_the_bit(dtype: str):
    steps, advantages = sampled(tiny_model()), np.linspace(-1, 1, len(TEXTS))
    config = replace(OPTIM, warmup_steps=5)

    def make() -> Any:
        model = tiny_model().to(getattr(torch, dtype))
        return model, learner(model, config)

    model, trained = make()
    for _ in range(2):
        trained.update(steps, advantages, rng=rng())
    again, resumed = make()
    again.load_state_dict(model.state_dict())
    resumed.load_state(copy.deepcopy(trained.state()))
    for one in (trained, resumed):
        one.update(steps, advantages, rng=rng(7))
    assert torch.equal(weights(model), weights(again))
    assert resumed.state()["schedule"] == trained.state()["schedule"]


def test_a_run_that_is_made_longer_goes_on_with_the_rate_of_its_new_length():
    ended = replace(OPTIM, iterations=1, minibatches=1, epochs=1, lr_schedule="linear")
    model = tiny_model()
    steps = sampled(model)
    first = learner(model, ended)
    first.update(steps, np.ones(len(steps)), rng=rng())
    assert first.optimizer.param_groups[0]["lr"] == 0.0
    longer = learner(model, replace(ended, iterations=2))
    longer.load_state(copy.deepcopy(first.state()))
    assert longer.optimizer.param_groups[0]["lr"] == pytest.approx(OPTIM.lr / 2)


def test_updates_without_a_finite_gradient_are_skipped_and_stop_the_run_after_a_cap():
    model = tiny_model()
    steps = sampled(model)
    nothing, good = np.full(len(steps), np.nan), np.ones(len(steps))
    trained = learner(model, replace(OPTIM, max_skipped=2))
    metrics = trained.update(steps, nothing, rng=rng())
    assert metrics["optim/skipped_updates"] == 1 and math.isnan(metrics["loss/grad_norm"])
    assert torch.equal(weights(model), weights(tiny_model()))
    # A good one in between starts the count anew.
    assert trained.update(steps, good, rng=rng())["optim/skipped_updates"] == 0
    assert not torch.equal(weights(model), weights(tiny_model()))
    trained.update(steps, nothing, rng=rng())
    with pytest.raises(TrainingError, match="2 updates in a row had no finite gradient"):
        trained.update(steps, nothing, rng=rng())


def test_a_full_memory_names_the_setting_to_change(monkeypatch):
    def full(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    monkeypatch.setattr(Learner, "_collate", full)
    with pytest.raises(TrainingError, match=r"lower optim.micro_batch_tokens \(now 16384\)"):
        update(tiny_model())


def test_recomputed_activations_give_the_same_update():
    plain, _ = update(tiny_model())
    model = tiny_model()
    model.gradient_checkpointing_enable({"use_reentrant": False})
    again, _ = update(model)
    assert torch.allclose(plain, again, atol=1e-6)
    assert (plain - weights(tiny_model())).abs().max() > 1e-4
    assert not model.training


@pytest.mark.parametrize("epochs", [1, 2])
def test_recomputed_log_probabilities_correct_a_sampler_that_computes_otherwise(epochs: int):
    model = tiny_model()
    steps = sampled(model)
    other = [replace(s, logprobs=tuple(p - 0.3 for p in s.logprobs)) for s in steps]
    advantages = np.ones(len(steps))
    config = replace(OPTIM, old_logprobs="recomputed", epochs=epochs, lr=1e-6)
    metrics = learner(model, config).update(other, advantages, rng=rng())
    assert metrics["loss/sampler_gap"] == pytest.approx(0.3, abs=1e-4)
    # All ratios are 1 and all importance weights e^0.3.
    assert metrics["loss/policy"] == pytest.approx(-math.exp(0.3), rel=1e-3)
    capped = replace(config, importance_cap=1.1)
    metrics = learner(tiny_model(), capped).update(other, advantages, rng=rng())
    assert metrics["loss/policy"] == pytest.approx(-1.1, rel=1e-3)
