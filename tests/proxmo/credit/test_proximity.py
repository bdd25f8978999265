"""The proximity index: distinct states as vectors, exact comparison, FAISS for the top k."""

import functools
import subprocess
import sys

import numpy as np
import pytest

from proxmo import credit
from proxmo.credit import aggregation, embeddings, nearest, proximity
from proxmo.credit.aggregation import soft_baselines
from proxmo.credit.nearest import NearestStates
from proxmo.credit.proximity import ProximityIndex
from proxmo.errors import ConfigError, DataError, MissingDependencyError
from tests.proxmo.credit.batches import random_batch, single_steps

ONE_POOL = np.zeros(200, np.int64)


@pytest.fixture
def vectors():
    return np.random.default_rng(0).normal(size=(200, 10)).astype(np.float32)


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def cosines(index):
    """Similarities of all nodes of the only pool."""
    found = index.vectors(0, len(index.nodes.pool))
    return found @ found.T


def test_a_state_is_compared_with_every_state_of_its_pool_and_no_other(vectors):
    pool = np.arange(200) % 3
    index = ProximityIndex(vectors, pool)
    for node in (0, 100, 199):
        ids, similarity = index.similar(node)
        row, rows = index.nodes.row[node], index.nodes.row[ids]
        assert sorted(rows) == np.flatnonzero(pool == pool[row]).tolist()
        np.testing.assert_allclose(similarity, unit(vectors)[rows] @ unit(vectors)[row], atol=1e-6)


def test_identical_states_are_one_node_and_exactly_similar_to_themselves(vectors):
    index = ProximityIndex(np.repeat(vectors[:50], 4, axis=0), ONE_POOL)
    assert len(index.nodes.pool) == 50
    ids, similarity = index.similar(7)
    assert ids[0] == 7 and similarity[0] == 1.0


@pytest.mark.parametrize("exclude", ["none", "self", "episode"])
def test_the_size_of_the_blocks_does_not_matter(vectors, monkeypatch, exclude):
    value, episode = np.arange(200.0), np.arange(200) // 7
    index = ProximityIndex(np.round(vectors), ONE_POOL)
    whole = soft_baselines(index, value, episode, exclude=exclude)
    monkeypatch.setattr(aggregation, "BLOCK", 500)
    monkeypatch.setattr(aggregation, "TILE", 13)
    parts = soft_baselines(index, value, episode, exclude=exclude)
    np.testing.assert_allclose(parts.value, whole.value, atol=1e-9)
    np.testing.assert_allclose(parts.neighbours, whole.neighbours, rtol=1e-9)


def test_large_pools_are_compared_in_single_precision(monkeypatch):
    batch = random_batch(np.random.default_rng(0), states=20)
    double = credit.assign("proxmo", **batch).advantage
    monkeypatch.setattr(embeddings, "DOUBLE", 1)
    single = credit.assign("proxmo", **batch).advantage
    assert 0 < np.abs(single - double).max() < 5e-6


def test_more_states_than_can_be_compared_are_refused_with_the_ways_out(monkeypatch):
    batch = random_batch(np.random.default_rng(0), states=20)
    monkeypatch.setattr(embeddings, "_MOST_WORK", 1000)
    reason = r"19 distinct states, as vectors of \d+ numbers, .*; set top_k"
    with pytest.raises(ConfigError, match=reason):
        credit.assign("proxmo", **batch, scope="batch")
    with pytest.raises(ConfigError, match="too many to compare"):
        credit.assign("proxmo", **batch | {"state": np.eye(len(batch["step"]))})
    monkeypatch.setattr(proximity, "LARGE", 10)
    credit.assign("proxmo", **batch, scope="batch", top_k=5)


def test_the_top_k_are_the_nearest_and_the_state_itself_is_always_among_them(vectors):
    index = ProximityIndex(vectors, ONE_POOL, top_k=20)
    ids, similarity = index.similar(7)
    places = unit(vectors)[index.nodes.row]
    assert set(ids) == set(np.argsort(-(places @ places[7]))[:20])
    assert ids[0] == 7 and similarity[0] == 1.0


def test_a_large_pool_shares_columns_only_in_a_search_for_the_top_k(monkeypatch):
    monkeypatch.setattr(proximity, "LARGE", 30)
    monkeypatch.setattr(proximity, "LARGE_COLUMNS", 16)
    texts = [f"word{one} word{one + 1} here" for one in range(40)]
    assert ProximityIndex(texts, [0] * 40).vectors(0, 40).shape == (40, 42)
    assert ProximityIndex(texts, [0] * 40, top_k=5).vectors(0, 40).shape == (40, 16)


def test_approximate_search_reports_its_recall_and_returns_exact_similarities(monkeypatch):
    monkeypatch.setattr(nearest, "APPROXIMATE_FROM", 1000)
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(40, 30))
    states = unit(centres[rng.integers(40, size=3000)] + 0.3 * rng.normal(size=(3000, 30)))
    search = NearestStates(states, 16)
    ids, similarity = search.search(np.arange(300))
    exact = np.argsort(-(states[:300] @ states.T), axis=1)[:, :16]
    true = np.mean([len(set(one) & set(two)) for one, two in zip(exact, ids, strict=True)]) / 16
    assert search.recall > 0.8
    assert search.recall == pytest.approx(true, abs=0.1)
    np.testing.assert_allclose(similarity[5], states[ids[5]] @ states[5], atol=1e-5)
    assert NearestStates(states, 16, exact=True).recall is None


def test_the_recall_is_a_metric_of_the_method(monkeypatch):
    monkeypatch.setattr(nearest, "APPROXIMATE_FROM", 500)
    state = np.random.default_rng(0).normal(size=(1000, 8))
    batch = single_steps(np.arange(1000.0).tolist(), state=state)
    out = credit.assign("proxmo", **batch, scope="batch", top_k=8)
    assert 0.3 < out.diagnostics["credit/search_recall"] <= 1.0


def test_a_gpu_build_searches_top_k_on_the_gpu(vectors, monkeypatch):
    faiss = nearest.import_faiss()
    moved = []
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1, raising=False)
    monkeypatch.setattr(faiss, "StandardGpuResources", object, raising=False)
    monkeypatch.setattr(
        faiss, "index_cpu_to_gpu", lambda _, gpu, index: moved.append(gpu) or index, raising=False
    )
    NearestStates(vectors, 5)
    assert moved == [0]


def test_the_index_serves_without_a_method():
    # e^(1/tau) = 3: at (1, 0) the mean of 4 and 0 with weights 3 and 1.
    index = ProximityIndex(np.eye(2), np.zeros(2, np.int64))
    value = np.array([4.0, 0.0])[index.nodes.of_row]
    found = soft_baselines(index, value, np.array([0, 1]), tau=1 / np.log(3))
    np.testing.assert_allclose(sorted(found.value), [1.0, 3.0], atol=1e-12)
    # 1 / (9/16 + 1/16)
    np.testing.assert_allclose(found.neighbours, [1.6, 1.6], atol=1e-12)


@pytest.mark.parametrize("pool", [[7, 7, 2], list("aab"), np.array([2**62, 2**62, 0])])
def test_a_pool_is_any_id_in_any_form(pool):
    torch = pytest.importorskip("torch")
    kinds = [pool, np.array(pool)]
    if not isinstance(pool[0], str):
        kinds.append(torch.tensor(pool))
    for kind in kinds:
        index = ProximityIndex(["shelf 1", "shelf 2", "shelf 1"], kind)
        row = index.nodes.row
        met = {row[one]: sorted(row[index.similar(one)[0]].tolist()) for one in range(3)}
        assert met == {0: [0, 1], 1: [0, 1], 2: [2]}


def test_not_one_pool_for_each_state_is_one_clear_error():
    with pytest.raises(DataError, match="pool 2, state 3"):
        ProximityIndex(["a", "b", "c"], [0, 0])
    with pytest.raises(DataError, match=r"pool is an array of shape \(2, 1\)"):
        ProximityIndex(["a", "b"], np.zeros((2, 1), int))
    for top_k in (0, 1.5, True, "2"):
        with pytest.raises(ConfigError, match="top_k is"):
            ProximityIndex(["a"], [0], top_k=top_k)
    for name in (None, 3):
        with pytest.raises(ConfigError, match="embedding is"):
            ProximityIndex(["a"], [0], embedding=name)


def test_an_embedding_may_give_tensors():
    torch = pytest.importorskip("torch")
    for options in ({"requires_grad": True}, {"dtype": torch.bfloat16}, {"dtype": torch.int64}):
        embed = functools.partial(lambda how, texts: torch.ones(len(texts), 2, **how), options)
        index = ProximityIndex(["a", "b"], [0, 0], embedding=embed)
        np.testing.assert_allclose(cosines(index), np.ones((2, 2)), atol=1e-6)


@pytest.mark.parametrize(
    "wrong", [[["x"], ["y"]], [[1j], [2j]], [[True], [False]], [1.0, 2.0], [[np.nan], [1.0]], None]
)
def test_an_embedding_that_gives_no_vectors_is_one_clear_error(wrong):
    index = ProximityIndex(["a", "b"], [0, 0], embedding=lambda texts: wrong)
    with pytest.raises(DataError, match="the embedding gave an array of shape .* and type"):
        index.vectors(0, 2)


def test_a_history_adds_what_was_seen_before_with_a_decay():
    # (1, 0), then (0, 1): with a decay of 1/2 the second is (1/2, 1), of length sqrt(5/4).
    state, episode = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), [0, 0, 1]
    index = ProximityIndex(state, [0, 0, 0], history=0.5, episode=episode)
    found = index.vectors(0, 3)[index.nodes.of_row]
    expected = [[1.0, 0.0], np.array([0.5, 1.0]) / np.sqrt(1.25), [0.0, 1.0]]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert len(ProximityIndex(state, [0, 0, 0]).nodes.pool) == 2


def test_equal_histories_are_one_node():
    state = ["hall", "shelf", "hall", "shelf", "shelf", "hall"]
    episode = [0, 0, 1, 1, 2, 2]
    index = ProximityIndex(state, [0] * 6, history=0.9, episode=episode)
    same = index.nodes.of_row
    assert same[0] == same[2] and same[1] == same[3] and len(set(same)) == 4


def test_the_search_for_the_top_k_needs_faiss_and_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    batch = single_steps([1.0, 0.0], state=["a", "b"])
    with pytest.raises(MissingDependencyError, match=r"pip install 'proxmo\[cpu\]'"):
        credit.assign("proxmo", **batch, top_k=1)


def test_nothing_else_needs_faiss():
    check = (
        "import sys; sys.modules['faiss'] = None; from proxmo import credit\n"
        "batch = dict(group=[0, 0], episode=[0, 1], step=[0, 0], reward=[1.0, 0.0],"
        " success=[1, 0], state=['a', 'b'], action=['x', 'y'])\n"
        "for name in credit.method_names():\n"
        "    value = {'value': [0.0, 0.0]} if name in ('gae', 'ppo') else {}\n"
        "    credit.assign(name, **batch, **value)"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
