"""The proximity index: neighbours by FAISS."""

import functools
import sys

import numpy as np
import pytest

from proxmo import credit
from proxmo.credit import proximity
from proxmo.credit.aggregation import soft_baselines
from proxmo.credit.proximity import ProximityIndex
from proxmo.errors import ConfigError, DataError, MissingDependencyError
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


@pytest.mark.parametrize("pool", [[7, 7, 2], list("aab"), np.array([2**62, 2**62, 0])])
def test_a_pool_is_any_id_in_any_form(pool):
    state = ["shelf 1", "shelf 2", "shelf 1"]
    torch = pytest.importorskip("torch")
    expected = [[0, 0], [0, 1], [1, 0], [1, 1], [2, 2]]
    kinds = [pool, np.array(pool)]
    if not isinstance(pool[0], str):
        kinds.append(torch.tensor(pool))
    for kind in kinds:
        nodes = ProximityIndex(state, kind).nodes
        met = {nodes.row[one]: set() for one in range(3)}
        for found in ProximityIndex(state, kind).search():
            for query, ids in zip(found.query, found.ids, strict=True):
                met[nodes.row[query]] |= set(nodes.row[ids])
        assert sorted([one, other] for one in met for other in met[one]) == expected


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
        (found,) = ProximityIndex(["a", "b"], [0, 0], embedding=embed).search()
        np.testing.assert_allclose(found.similarity, np.ones((2, 2)), atol=1e-6)


@pytest.mark.parametrize(
    "wrong", [[["x"], ["y"]], [[1j], [2j]], [[True], [False]], [1.0, 2.0], [[np.nan], [1.0]], None]
)
def test_an_embedding_that_gives_no_vectors_is_one_clear_error(wrong):
    index = ProximityIndex(["a", "b"], [0, 0], embedding=lambda texts: wrong)
    with pytest.raises(DataError, match="the embedding gave an array of shape .* and type"):
        list(index.search())


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
