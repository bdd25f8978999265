"""Scores of methods: on truths whose cosines can be told by hand."""

from __future__ import annotations

import numpy as np
import pytest

from proxmo import credit
from proxmo.errors import ConfigError, UsageError
from proxmo.evaluation.credit_quality import Truth, compare
from proxmo.evaluation.credit_quality.comparison import parse_method


def truth(seed: int, noise: float = 0.0, wins: bool = True) -> Truth:
    """A task of 4 episodes of 3 steps, of which two win at their last step."""
    rng = np.random.default_rng(seed)
    episode, step = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    success = np.isin(episode, (0, 1)) & wins
    value = rng.random(12)
    return Truth(
        task_id=f"task {seed}",
        episode=episode,
        step=step,
        reward=(success & (step == 2)).astype(float),
        success=success,
        truncated=~success,
        state=tuple(f"state {i % 5}" for i in range(12)),
        action=tuple("go" for _ in range(12)),
        expert=rng.random(12) < 0.5,
        value=np.stack([value, value + noise * rng.standard_normal(12)], axis=1),
    )


@pytest.fixture
def perfect(monkeypatch: pytest.MonkeyPatch) -> list[Truth]:
    """Truths, and a method "perfect" that gives their true advantages."""
    truths = [truth(seed) for seed in range(6)]
    known = np.concatenate([t.advantage(0.95).mean(1) for t in truths])

    def method(rows: credit.Rows, *, sign: float = 1.0) -> credit.Parts:
        return credit.Parts(sign * known[rows.source], np.zeros(len(known)))

    monkeypatch.setitem(credit.registry._METHODS, "perfect", method)
    return truths


def test_the_true_advantages_score_one_and_their_opposite_minus_one(perfect: list[Truth]):
    found = compare(perfect, ["perfect", "perfect[sign=-1.0]", "grpo"])
    assert found.methods["perfect"].cosine == pytest.approx(1.0)
    assert found.methods["perfect"].low == pytest.approx(1.0)
    assert found.methods["perfect[sign=-1.0]"].cosine == pytest.approx(-1.0)
    assert -1 < found.methods["grpo"].cosine < 1
    assert found.reliability == pytest.approx(1.0)


def test_a_method_that_rewards_winning_steps_alone_scores_nothing_where_nobody_wins():
    found = compare([truth(seed) for seed in range(6)], ["grpo"])
    alone = found.trivial["trivial: reward alone"]
    assert alone.cosine == 0.0
    assert alone.all_steps > 0.2
    assert 0 < found.winning_share < 1


def test_noise_in_the_truth_lowers_the_reliability_and_not_the_corrected_cosine():
    """The oracle's plain cosine falls with the noise; its correction holds it up."""
    clean = compare([truth(seed) for seed in range(200)], ["grpo"])
    noisy = compare([truth(seed, noise=0.3) for seed in range(200)], ["grpo"])
    assert noisy.reliability < 0.95 < clean.reliability
    assert noisy.methods["grpo"].cosine == pytest.approx(clean.methods["grpo"].cosine, abs=0.05)


def test_a_difference_is_paired_over_tasks(perfect: list[Truth]):
    found = compare(perfect, ["perfect", "grpo"], against=["grpo"])
    mean, low, high = found.methods["perfect"].differences["grpo"]
    assert mean == pytest.approx(1.0 - found.methods["grpo"].cosine)
    assert low <= mean <= high
    assert found.methods["grpo"].differences == {}


def test_the_area_under_the_curve_is_one_for_a_method_that_knows_the_expert(
    monkeypatch: pytest.MonkeyPatch,
):
    truths = [truth(seed) for seed in range(6)]
    expert = np.concatenate([t.expert for t in truths if t.expert is not None])

    def method(rows: credit.Rows) -> credit.Parts:
        return credit.Parts(expert[rows.source].astype(float), np.zeros(len(expert)))

    monkeypatch.setitem(credit.registry._METHODS, "knows", method)
    found = compare(truths, ["knows"])
    assert found.methods["knows"].auc == pytest.approx(1.0)
    assert found.trivial["trivial: reward alone"].auc == pytest.approx(0.5)


def test_a_truth_of_noise_alone_is_refused():
    opposite = [truth(seed, wins=False) for seed in range(4)]
    flipped = [
        Truth(
            **{f: getattr(t, f) for f in Truth.__slots__ if f != "value"}, value=t.value * [1, -1]
        )
        for t in opposite
    ]
    with pytest.raises(UsageError, match="all noise; raise --continuations"):
        compare(flipped, ["grpo"])


@pytest.mark.parametrize("limit_ends", [False, True])
def test_methods_learn_of_the_step_limit_what_the_trainer_tells_them_unless_asked_otherwise(
    monkeypatch: pytest.MonkeyPatch, limit_ends: bool
):
    truths, seen = [truth(seed) for seed in range(3)], []

    def method(rows: credit.Rows) -> credit.Parts:
        seen.append(rows.episode_truncated)
        return credit.Parts(rows.reward, np.zeros(len(rows.reward)))

    credit.method_names()
    monkeypatch.setitem(credit.registry._METHODS, "looks", method)
    compare(truths, ["looks"], limit_ends=limit_ends)
    lost = np.tile([False, False, True, True], 3)
    assert seen[0].tolist() == (lost & (not limit_ends)).tolist()


def test_names_carry_options_in_brackets():
    assert parse_method("grpo") == ("grpo", {})
    expected = ("proxmo", {"omega": 10, "scope": "batch", "modulation": False})
    assert parse_method("proxmo[omega=10, scope=batch,modulation=false]") == expected
    for wrong in ("proxmo[omega]", "proxmo[omega=1", "[a=1]", "proxmo[1=2]"):
        with pytest.raises(UsageError, match="is not of the form"):
            parse_method(wrong)
    with pytest.raises(ConfigError, match="no option 'omegaa'"):
        compare([truth(0), truth(1)], ["proxmo[omegaa=1]"])
