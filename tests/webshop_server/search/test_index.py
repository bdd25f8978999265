"""The index ranks as recorded, survives disk, pickle, forks and threads, and any query is legal."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.webshop_server.recorded import lines
from webshop_server.errors import SearchError
from webshop_server.search import SearchIndex

ASINS = ["B3", "B1", "B2", "B4"]
TEXTS = ["red shoes for women", "red shoes", "blue suede shoes", "caf\u00e9 table \u2605"]


@pytest.fixture
def index() -> SearchIndex:
    return SearchIndex.build(ASINS, iter(TEXTS))


@pytest.mark.parametrize("catalogue", ["real1000", "fict300"])
def test_recorded_queries_find_the_recorded_products_in_order(shared, catalogue):
    folder = shared / "webshop"
    indexed = lines(folder / f"data/{catalogue}/index_docs.jsonl.gz")
    documents = {one["id"]: one["contents"] for one in indexed}
    index = SearchIndex.build(list(documents), documents.values())
    rows = list(lines(folder / f"tables/search_{catalogue}.jsonl.gz"))
    assert len(rows) > 100
    for row in rows:
        found = index.search_scored(row["query"])
        assert [asin for asin, _ in found] == row["docids"], row["query"]
        # The table has four decimals, and ties moved apart by a millionth.
        expected = pytest.approx(row["scores"], abs=1.5e-4)
        assert [score for _, score in found] == expected, row["query"]


def test_the_shorter_of_two_documents_comes_first_and_k_limits(index):
    assert index.search("red shoe") == ["B1", "B3", "B2"]
    assert index.search("red shoe", k=1) == ["B1"]
    assert len(index) == 4


@pytest.mark.parametrize("query", ["", "   ", "the of and", "nowhere", "\ud800", "\0", "(((\\"])
def test_a_query_without_a_known_word_finds_nothing(index, query):
    assert index.search(query) == []


@pytest.mark.parametrize(
    "query",
    [
        "+shoes -red",
        "title:red~2 OR red*",
        "<b>red</b>",
        "red\u2019s",
        "RED" + " x" * 5000,
        "red\0",
    ],
)
def test_operators_markup_and_long_queries_are_words_like_others(index, query):
    assert index.search(query)[0] == "B1"


def test_a_repeated_word_counts_as_often_as_it_is_asked_for(index):
    (once,) = index.search_scored("suede")
    (thrice,) = index.search_scored("suede suede suede")
    assert thrice[1] == pytest.approx(3 * once[1])


def test_no_documents_wanted_is_an_error(index):
    with pytest.raises(ValueError, match="k is 0"):
        index.search("red", k=0)


def test_an_index_in_memory_is_pickled_whole_and_an_opened_one_by_its_path(
    index, tmp_path, monkeypatch
):
    assert pickle.loads(pickle.dumps(index)).search("red shoe") == index.search("red shoe")
    index.save(tmp_path / "shop")
    monkeypatch.chdir(tmp_path)
    packed = pickle.dumps(SearchIndex.open("shop"))
    assert len(packed) < 500
    monkeypatch.chdir("/")
    assert pickle.loads(packed).search("red shoe") == index.search("red shoe")


def test_a_forked_child_searches_the_index_of_its_parent(index, tmp_path):
    index.save(tmp_path)
    opened = SearchIndex.open(tmp_path)
    expected = opened.search("red shoe")
    # In a process of its own: the test process has threads, and forking it would be unsound.
    code = (
        "import os, sys; from webshop_server.search import SearchIndex;"
        "index = SearchIndex.open(sys.argv[1]); index.search('red shoe'); child = os.fork();"
        "print(*index.search('red shoe'), flush=True) if not child else os.waitpid(child, 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == expected


def test_threads_get_the_answers_of_one(index):
    generator = np.random.default_rng(0)
    words = ["red", "blue", "shoes", "women", "suede", "table"]
    queries = [" ".join(generator.choice(words, 3)) for _ in range(200)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(index.search, queries)) == [index.search(one) for one in queries]


def test_documents_are_read_one_batch_at_a_time(monkeypatch):
    monkeypatch.setattr("webshop_server.search.index._BATCH", 2)
    index = SearchIndex.build(ASINS, iter(TEXTS))
    assert index.search("red shoe") == ["B1", "B3", "B2"]
    assert index.search("caf\u00e9") == ["B4"]


@pytest.mark.parametrize(
    ("asins", "texts", "message"),
    [
        ([], [], "nothing to search: no word in 0 documents"),
        (["B1", "B2"], ["", "the ---"], "nothing to search: no word in 2 documents"),
        (["B1", "B1"], ["a", "b"], "'B1' names two documents"),
        (["B1", "B2"], ["a"], "2 asins came with only 1 documents"),
        (["B1"], ["a", "b"], "more documents than the 1 asins"),
    ],
)
def test_what_cannot_be_indexed_is_a_clear_error(asins, texts, message):
    with pytest.raises(SearchError, match=message):
        SearchIndex.build(asins, texts)
