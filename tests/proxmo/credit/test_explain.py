"""Why a step got its advantage."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from proxmo import credit
from tests.proxmo.credit.batches import random_batch, single_steps


@pytest.mark.parametrize("top_k", [None, 3])
@pytest.mark.parametrize("exclude", ["none", "self", "episode"])
def test_the_neighbours_add_up_to_the_baseline_that_was_used(exclude, top_k):
    out = credit.assign(
        "proxmo", **random_batch(np.random.default_rng(0)), exclude=exclude, top_k=top_k
    )
    for row in range(0, len(out.advantage), 7):
        told = out.explain(row)
        assert sum(one.weight for one in told.neighbours) == pytest.approx(1)
        assert told.step_return - told.baseline == pytest.approx(out.step_advantage[row], abs=1e-5)
        weights = [one.weight for one in told.neighbours]
        assert weights == sorted(weights, reverse=True)


def test_an_explanation_tells_the_texts_and_the_outcome():
    batch = single_steps([1.0, 0.0, 0.0], state=["shelf 1", "shelf 1", "fridge 1"])
    told = credit.assign("proxmo", **batch).explain(1)
    first, second = told.neighbours
    assert (told.text, told.success, told.success_rate, told.group_size) == (
        "shelf 1",
        False,
        pytest.approx(1 / 3),
        3,
    )
    assert (first.text, first.count, first.step_return, first.row) == ("shelf 1", 2, 0.5, 0)
    assert (second.text, second.similarity) == ("fridge 1", 0.0)
    # f(failure, 1/3) = -tanh((1/3)^4 / 2) / (2 tanh(1/2)) = -0.006679.
    assert told.modulation == pytest.approx(1 - 0.0006679, abs=1e-6)
    assert json.loads(json.dumps(asdict(told)))["row"] == 1


def test_gigpo_explains_a_step_by_its_step_group():
    batch = single_steps([1.0, 0.0, 0.0], state=["shelf 1", "shelf 1", "fridge 1"])
    told = credit.assign("gigpo", **batch).explain(0)
    assert [(one.row, one.weight) for one in told.neighbours] == [(0, 0.5), (1, 0.5)]
    assert told.baseline == 0.5


def test_gigpo_says_how_similar_the_states_of_a_step_group_are():
    # 9 of 10 characters are shared.
    batch = single_steps([1.0, 0.0, 0.0], state=["abcdefghij", "abcdefghiX", "abcdefghij"])
    told = credit.assign("gigpo", **batch, similarity=0.9).explain(0)
    assert [one.similarity for one in told.neighbours] == [1.0, 0.9, 1.0]
    # (3, 4) against (4, 3): cosine 24/25.
    batch = single_steps([1.0, 0.0, 0.0], state=np.array([[3.0, 4.0], [4.0, 3.0], [0.0, 1.0]]))
    told = credit.assign("gigpo", **batch, similarity=0.9, matcher="tfidf").explain(1)
    assert [one.similarity for one in told.neighbours] == pytest.approx([0.96, 1.0])


def test_methods_without_a_step_baseline_have_no_neighbours():
    told = credit.assign("grpo", **single_steps([1.0, 0.0], state=None)).explain(0)
    assert told.neighbours == () and told.baseline is None and told.text is None
    assert told.modulation is None


def test_rows_are_those_of_the_caller():
    # The group ids sort the other way round than the rows come.
    batch = single_steps([1.0, 0.0, 5.0], group=[2, 2, 1], state=["a", "b", "c"])
    out = credit.assign("proxmo", **batch)
    assert [out.explain(row).text for row in range(3)] == ["a", "b", "c"]
    assert {one.row for one in out.explain(1).neighbours} == {0, 1}
    for wrong in (3, -1, 1.0, "first", None):
        with pytest.raises(IndexError, match="row is .*; expected one of the 3 rows"):
            out.explain(wrong)
