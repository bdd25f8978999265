"""The proximity index: neighbours by FAISS."""

import sys

import numpy as np
import pytest

from proxmo import credit
from proxmo.credit import proximity
from proxmo.credit.aggregation import soft_baselines
from proxmo.credit.proximity import ProximityIndex
from proxmo.errors import MissingDependencyError
from tests.proxmo.credit.batches import single_steps

ONE_POOL = np.zeros(200, np.int64)


@pytest.fixture
def vectors():
    return np.random.default_rng(0).normal(size=(200, 10)).astype(np.float32)


def found_by_node(index):
    blocks = list(index.search())
    ids = np.concatenate([one.ids for one in blocks])
    return ids, np.concatenate([one.similarity for one in blocks])


def test_a_complete_search_finds_every_state_of_the_pool(vectors):
    ids, similarity = found_by_node(ProximityIndex(vectors, ONE_POOL))
    assert ids.shape == (200, 200)
    np.testing.assert_array_equal(np.sort(ids, axis=1)[3], np.arange(200))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(similarity[3], (unit @ unit[3])[ids[3]], atol=1e-6)


def test_blocks_of_queries_together_give_the_whole(vectors, monkeypatch):
    whole, _ = found_by_node(ProximityIndex(vectors, ONE_POOL, top_k=5))
    monkeypatch.setattr(proximity, "BLOCK", 35)
    parts, _ = found_by_node(ProximityIndex(vectors, ONE_POOL, top_k=5))
    np.testing.assert_array_equal(parts, whole)


def test_pools_never_mix(vectors):
    pool = np.arange(200) % 3
    index = ProximityIndex(vectors, pool)
    for block in index.search():
        assert (index.nodes.pool[block.ids] == index.nodes.pool[block.query][:, None]).all()


def test_identical_states_are_one_node_and_exactly_similar_to_themselves(vectors):
    index = ProximityIndex(np.repeat(vectors[:50], 4, axis=0), ONE_POOL)
    assert len(index.nodes.pool) == 50
    ids, similarity = found_by_node(index)
    assert (similarity[ids == np.arange(50)[:, None]] == 1.0).all()


def test_a_pool_too_large_for_a_complete_search_keeps_its_nearest(vectors, monkeypatch):
    monkeypatch.setattr(proximity, "LARGE", 100)
    monkeypatch.setattr(proximity, "DEFAULT_TOP_K", 20)
    ids, similarity = found_by_node(ProximityIndex(vectors, ONE_POOL))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert ids.shape == (200, 20)
    assert set(ids[7]) == set(np.argsort(-(unit @ unit[7]))[:20])


def test_approximate_search_reports_its_recall_and_returns_exact_similarities(monkeypatch):
    monkeypatch.setattr(proximity, "APPROXIMATE_FROM", 1000)
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(40, 30))
    states = centres[rng.integers(40, size=3000)] + 0.3 * rng.normal(size=(3000, 30))
    index = ProximityIndex(states, np.zeros(3000, np.int64), top_k=16)
    ids, similarity = found_by_node(index)
    (recall,) = index.recalls
    unit = states / np.linalg.norm(states, axis=1, keepdims=True)
    exact = np.argsort(-(unit[:300] @ unit.T), axis=1)[:, :16]
    true = np.mean([len(set(one) & set(two)) for one, two in zip(exact, ids, strict=False)]) / 16
    assert recall > 0.8
    assert recall == pytest.approx(true, abs=0.1)
    np.testing.assert_allclose(similarity[5], unit[ids[5]] @ unit[5], atol=1e-5)


def test_the_recall_is_a_metric_of_the_method(monkeypatch):
    monkeypatch.setattr(proximity, "APPROXIMATE_FROM", 500)
    state = np.random.default_rng(0).normal(size=(1000, 8))
    batch = single_steps(np.arange(1000.0).tolist(), state=state)
    out = credit.assign("proxmo", **batch, scope="batch", top_k=8)
    assert 0.3 < out.diagnostics["credit/search_recall"] <= 1.0


def test_a_gpu_build_searches_top_k_on_the_gpu(vectors, monkeypatch):
    faiss = proximity.import_faiss()
    moved = []
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1, raising=False)
    monkeypatch.setattr(faiss, "StandardGpuResources", object, raising=False)
    monkeypatch.setattr(
        faiss, "index_cpu_to_gpu", lambda _, gpu, index: moved.append(gpu) or index, raising=False
    )
    found_by_node(ProximityIndex(vectors, ONE_POOL, top_k=5))
    assert moved == [0]


def test_the_index_serves_without_a_method():
    # e^(1/tau) = 3: at (1, 0) the mean of 4 and 0 with weights 3 and 1.
    index = ProximityIndex(np.eye(2), np.zeros(2, np.int64))
    found = soft_baselines(index, np.array([4.0, 0.0]), np.array([0, 1]), tau=1 / np.log(3))
    np.testing.assert_allclose(found.value, [3.0, 1.0], atol=1e-6)
    # 1 / (9/16 + 1/16)
    np.testing.assert_allclose(found.neighbours, [1.6, 1.6], atol=1e-6)


def test_the_number_of_threads_is_left_as_it_was(vectors):
    faiss = proximity.import_faiss()
    before = faiss.omp_get_max_threads()
    found_by_node(ProximityIndex(vectors, ONE_POOL))
    assert faiss.omp_get_max_threads() == before


def test_a_missing_faiss_is_one_line_that_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    batch = single_steps([1.0, 0.0], state=["a", "b"])
    with pytest.raises(MissingDependencyError, match=r"pip install 'proxmo\[cpu\]'"):
        credit.assign("proxmo", **batch)


def test_methods_without_neighbours_work_without_faiss(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    batch = single_steps([1.0, 0.0], state=["a", "b"])
    for method in ("grpo", "gigpo"):
        assert credit.assign(method, **batch).advantage[0] > 0
