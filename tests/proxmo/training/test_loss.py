"""The objective on three responses written by hand; every number is derived beside it."""

from __future__ import annotations

import math

import pytest

from proxmo.training.loss import (
    clipped_policy_loss,
    importance_weights,
    kl_divergence,
    loss_terms,
    normaliser,
    token_entropy,
    token_weights,
)

torch = pytest.importorskip("torch")

# Row 0: advantage +1, two tokens, ratios 1.5 (over the bound) and 0.5 (inside the minimum).
# Row 1: advantage -2, two tokens, ratios 1.5 and 0.5.
# Row 2: advantage +3, one token, ratio 1, then padding.
OLD = torch.tensor([[-1.0, -1.0], [-2.0, -1.0], [-0.5, 0.0]])
RATIO = torch.tensor([[1.5, 0.5], [1.5, 0.5], [1.0, 1.0]])
NEW = OLD + RATIO.log()
ADVANTAGE = torch.tensor([1.0, -2.0, 3.0])
MASK = torch.tensor([[True, True], [True, True], [True, False]])
CLIP = {"clip_low": 0.2, "clip_high": 0.2}


def terms(new=NEW, reference=None, mask=MASK, sampled=OLD, aggregation="token", **options):
    entropy = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 100.0]])
    weights = token_weights(mask, aggregation, longest=4)
    return loss_terms(
        new, entropy, OLD, sampled, reference, ADVANTAGE, mask, weights, **{**CLIP, **options}
    )


def test_a_ratio_is_clipped_only_where_that_makes_the_loss_larger():
    loss, clipped = clipped_policy_loss(NEW, OLD, ADVANTAGE.unsqueeze(-1), **CLIP)
    expected = [
        # A > 0: -min(1.5, 1.2) and -min(0.5, 0.8).
        [-1.2, -0.5],
        # A = -2: -min(-3.0, -2.4) and -min(-1.0, -1.6).
        [3.0, 1.6],
        [-3.0, -3.0],
    ]
    assert torch.allclose(loss, torch.tensor(expected), atol=1e-6)
    assert clipped.tolist() == [[True, False], [False, True], [False, False]]


def test_the_two_bounds_are_separate():
    loss, _ = clipped_policy_loss(NEW, OLD, ADVANTAGE.unsqueeze(-1), clip_low=0.4, clip_high=0.3)
    # Row 0: -min(1.5, 1.3); row 1: -min(-1.0, -2 * 0.6).
    assert loss[0, 0].item() == pytest.approx(-1.3)
    assert loss[1, 1].item() == pytest.approx(1.2)


def test_the_sums_are_over_real_tokens():
    sums = terms()
    assert sums.policy.item() == pytest.approx(-1.2 - 0.5 + 3.0 + 1.6 - 3.0, abs=1e-5)
    assert sums.entropy.item() == pytest.approx(15.0)
    assert sums.clipped.item() == 2
    gaps = 2 * math.log(1.5) + 2 * math.log(2.0)
    assert sums.sampler_gap.item() == pytest.approx(gaps)
    assert sums.kl.item() == 0.0


def test_kl_is_zero_between_equals_and_positive_both_ways():
    one = torch.tensor([-1.0, -3.0])
    assert kl_divergence(one, one, "k3").tolist() == [0.0, 0.0]
    # d = reference - policy = 0.5: e^0.5 - 1.5; d = -0.5: e^-0.5 - 0.5.
    assert kl_divergence(one, one + 0.5, "k3")[0].item() == pytest.approx(math.exp(0.5) - 1.5)
    assert kl_divergence(one, one - 0.5, "k3")[0].item() == pytest.approx(math.exp(-0.5) - 0.5)


POLICY, REFERENCE = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.3, 0.5])


def divergence(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return (one * (one.log() - other.log())).sum()


def test_k3_has_the_value_of_the_kl_in_expectation():
    estimate = (POLICY * kl_divergence(POLICY.log(), REFERENCE.log(), "k3")).sum()
    assert estimate.item() == pytest.approx(divergence(POLICY, REFERENCE).item())


@pytest.mark.parametrize(
    ("estimator", "whose"),
    [("k2", lambda p: divergence(p, REFERENCE)), ("k3", lambda p: divergence(REFERENCE, p))],
)
def test_the_gradient_of_an_estimator_is_that_of_a_kl_in_expectation(estimator, whose):
    """k2's is that of KL(policy || reference), k3's that of KL(reference || policy)."""
    logits = POLICY.log().requires_grad_()
    logprobs = torch.log_softmax(logits, 0)
    # Tokens come from the policy: their chances are numbers, not part of the graph.
    sampled = (POLICY * kl_divergence(logprobs, REFERENCE.log(), estimator)).sum()
    (found,) = torch.autograd.grad(sampled, logits, retain_graph=True)
    (expected,) = torch.autograd.grad(whose(torch.softmax(logits, 0)), logits)
    torch.testing.assert_close(found, expected)
    assert expected.abs().max() > 0.05


def test_minimising_the_kl_moves_the_policy_towards_the_reference():
    policy = torch.tensor([-1.0, -1.0], requires_grad=True)
    kl_divergence(policy, torch.tensor([-0.5, -2.0]), "k3").sum().backward()
    assert policy.grad is not None
    # A step against the gradient raises the first and lowers the second.
    assert policy.grad[0] < 0 < policy.grad[1]


def test_the_objective_adds_the_kl_and_takes_the_entropy_away():
    sums = terms(reference=NEW + 0.5)
    kl = 5 * (math.exp(0.5) - 1.5)
    assert sums.kl.item() == pytest.approx(kl, rel=1e-5)
    total = sums.total(0.1, 0.01).item()
    assert total == pytest.approx(sums.policy.item() + 0.1 * kl - 0.01 * 15.0, rel=1e-5)


def test_a_better_than_average_step_becomes_likelier_and_a_worse_one_less_likely():
    new = OLD.clone().requires_grad_()
    terms(new).policy.backward()
    assert new.grad is not None
    assert (new.grad[0] < 0).all() and (new.grad[1] > 0).all()
    # At ratio 1 the gradient is minus the advantage.
    assert new.grad[:, 0].tolist() == pytest.approx([-1.0, 2.0, -3.0])


def test_a_clipped_token_has_no_gradient():
    new = NEW.clone().requires_grad_()
    terms(new).policy.backward()
    assert new.grad is not None
    assert new.grad[0, 0] == 0.0 and new.grad[1, 1] == 0.0
    assert new.grad[0, 1] != 0.0 and new.grad[1, 0] != 0.0


def test_padding_has_neither_value_nor_gradient_however_wild_its_numbers():
    wild = NEW.clone()
    wild[2, 1] = -500.0
    reference = NEW.clone()
    reference[2, 1] = 300.0
    new = wild.requires_grad_()
    sums = terms(new, reference)
    assert sums.policy.item() == pytest.approx(terms().policy.item(), abs=1e-6)
    assert sums.kl.item() == pytest.approx(0.0, abs=1e-6)
    sums.total(1.0, 0.0).backward()
    assert new.grad is not None and torch.isfinite(new.grad).all()
    assert new.grad[2, 1] == 0.0


def test_the_entropy_of_even_odds_is_the_logarithm_of_their_number():
    even = torch.full((1, 1, 8), -math.log(8.0))
    assert token_entropy(even).item() == pytest.approx(math.log(8.0))
    sure = torch.log_softmax(torch.tensor([[[50.0, 0.0, 0.0]]]), -1)
    assert token_entropy(sure).item() == pytest.approx(0.0, abs=1e-6)


def test_what_a_token_counts_and_what_the_sum_is_divided_by():
    # Responses of 2, 2 and 1 tokens; the longest allowed has 4.
    assert token_weights(MASK, "token", 4).tolist() == [[1, 1], [1, 1], [1, 0]]
    assert token_weights(MASK, "sequence", 4).tolist() == [[0.5, 0.5], [0.5, 0.5], [1, 0]]
    assert token_weights(MASK, "constant", 4).tolist() == [[0.25, 0.25], [0.25, 0.25], [0.25, 0]]
    divisors = [normaliser(a, responses=3, tokens=5) for a in ("token", "sequence", "constant")]
    assert divisors == [5, 3, 3]


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        # The token losses of the first test: -1.2 -0.5 | 3.0 1.6 | -3.0.
        ("sequence", (-1.7 / 2 + 4.6 / 2 - 3.0)),
        ("constant", (-1.7 + 4.6 - 3.0) / 4),
    ],
)
def test_the_objective_weighs_responses_as_asked_and_the_metrics_tokens(aggregation, expected):
    sums = terms(aggregation=aggregation)
    assert sums.policy.item() == pytest.approx(expected, abs=1e-5)
    assert sums.plain_entropy.item() == pytest.approx(15.0)
    assert sums.clipped.item() == 2


def test_importance_weights_are_truncated():
    # Ratios trainer / sampler of 0.5, 1 and 4, cut at 2.
    gap = torch.tensor([0.5, 1.0, 4.0]).log()
    weights = importance_weights(gap, torch.zeros(3), cap=2.0)
    assert weights.tolist() == pytest.approx([0.5, 1.0, 2.0])


def test_the_importance_weight_multiplies_the_policy_term_and_its_gradient():
    sampled = OLD.clone()
    sampled[2, 0] -= math.log(1.5)
    plain, corrected = NEW.clone().requires_grad_(), NEW.clone().requires_grad_()
    terms(plain, sampled=sampled).policy.backward()
    sums = terms(corrected, sampled=sampled, importance_cap=2.0)
    sums.policy.backward()
    # Row 2 has loss -3 at weight 1.
    assert sums.policy.item() == pytest.approx(terms().policy.item() - 3.0 * 0.5, abs=1e-5)
    assert corrected.grad[2, 0] == pytest.approx(1.5 * plain.grad[2, 0].item())
    # The gap logged is that between trainer and sampler before the update.
    assert sums.sampler_gap.item() == pytest.approx(math.log(1.5), abs=1e-6)
