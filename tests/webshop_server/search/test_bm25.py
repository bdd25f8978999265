"""Scores and order are those of Lucene's BM25, however few documents are scored."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webshop_server.search import SearchIndex, bm25

# Few words, so that documents are alike and ties are common; "w0" is the most frequent one.
WORDS = st.integers(0, 60).map(lambda number: f"w{math.isqrt(number)}")
DOCUMENTS = st.lists(st.lists(WORDS, max_size=12), min_size=1, max_size=60)
QUERY = st.lists(WORDS, min_size=1, max_size=8)


def by_the_book(documents: list[list[str]], query: list[str]) -> list[tuple[str, float]]:
    """Score every document word by word, in the types that Lucene uses."""
    f = np.float32
    counted = sum(map(bool, documents))
    average = f(sum(map(len, documents)) / counted)
    scores = []
    for number, words in enumerate(documents):
        total, frequencies = 0.0, Counter(words)
        for word, count in Counter(query).items():
            if word not in frequencies:
                continue
            df = sum(word in other for other in documents)
            weight = f(count) * f(math.log(1 + (counted - df + 0.5) / (df + 0.5)))
            # Up to 40 words a length is stored as it is.
            norm = f(1) / (f(0.9) * ((f(1) - f(0.4)) + f(0.4) * f(len(words)) / average))
            total += float(weight - weight / (f(1) + f(frequencies[word]) * norm))
        if total:
            scores.append((f"A{number:04d}", float(f(total))))
    return sorted(scores, key=lambda row: (-row[1], row[0]))


def index(documents: list[list[str]]) -> SearchIndex:
    """Index documents last first, as the order in which they come must not matter."""
    asins = [f"A{number:04d}" for number in range(len(documents))]
    return SearchIndex.build(asins[::-1], [" ".join(words) for words in documents[::-1]])


@settings(max_examples=100, deadline=None)
@given(DOCUMENTS.filter(any), QUERY, st.integers(1, 8), st.sampled_from([1, 5, 1000]))
def test_the_best_are_those_of_the_whole_ranking_ties_included(documents, query, k, first_floor):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bm25, "_FIRST_FLOOR", first_floor)
        patch.setattr(bm25, "_NEXT_FLOOR", 2)
        found = index(documents).search_scored(" ".join(query), k)
    assert found == by_the_book(documents, query)[:k]


@pytest.mark.parametrize("k", [1, 10, 50])
def test_few_documents_are_scored_to_the_end_and_the_order_is_the_same(monkeypatch, k):
    generator = np.random.default_rng(0)
    # Frequencies fall with the square of the rank: rare words decide, frequent ones are pruned.
    documents = [
        [f"w{int(200 * place**2)}" for place in generator.random(generator.integers(1, 30))]
        for _ in range(3000)
    ]
    built = index(documents)
    looked_up = []
    look_up = bm25._look_up

    def spy(term, numbers, scores):
        looked_up.append(len(numbers))
        look_up(term, numbers, scores)

    monkeypatch.setattr(bm25, "_look_up", spy)
    monkeypatch.setattr(bm25, "_FIRST_FLOOR", 50)
    for _ in range(20):
        query = [f"w{int(200 * place**2)}" for place in generator.random(6)]
        terms = built.postings(" ".join(query))
        sums = np.zeros(len(documents))
        for term in terms:
            sums[term.documents] += term.parts()
        met = np.flatnonzero(sums)
        expected = bm25.top(met, sums[met], k)
        numbers, scores = bm25.best(terms, len(documents), k)
        assert numbers.tolist() == expected[0].tolist()
        assert scores.tolist() == expected[1].tolist()
    assert looked_up, "no query was pruned"


def test_a_score_by_hand():
    # Two documents of 2 and 4 words, 3 on average; "red" is in one: idf = ln(1 + 1.5 / 1.5).
    # norm = 1 / (0.9 * (0.6 + 0.4 * 2 / 3)) = 1.2821; score = idf * (1 - 1 / 2.2821) = 0.3894.
    (hit,) = index([["red", "shoe"], ["blue"] * 4]).search_scored("red")
    assert hit == ("A0000", pytest.approx(math.log(2) * (1 - 1 / (1 + 1 / 0.78)), rel=1e-6))


def test_lengths_are_stored_in_the_bytes_of_lucene(shared):
    facts = json.loads((shared / "webshop/tables/lucene_facts.json").read_text(encoding="utf-8"))
    assert bm25.LENGTHS.tolist() == facts["length_decode"]


def test_a_length_between_two_bytes_counts_as_the_lower():
    lengths = np.array([0, 1, 40, 41, 42, 43, 95, 96])
    stored = bm25.LENGTHS[bm25.length_codes(lengths)]
    assert stored.tolist() == [0, 1, 40, 40, 42, 42, 88, 96]
