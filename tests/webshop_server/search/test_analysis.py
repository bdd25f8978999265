"""Texts become the terms that Lucene's English analysis makes of them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.webshop_server.recorded import lines
from webshop_server.search import analyse
from webshop_server.search.analysis import _unicode_patterns, words


@pytest.mark.parametrize("catalogue", ["real1000", "fict300"])
def test_recorded_documents_and_queries_have_the_recorded_terms(shared, catalogue):
    folder = shared / "webshop"
    documents = list(lines(folder / f"data/{catalogue}/index_docs.jsonl.gz"))
    queries = list(lines(folder / f"tables/search_{catalogue}.jsonl.gz"))
    assert documents and queries
    terms = {row.get("contents", row.get("query")): row["tokens"] for row in documents + queries}
    assert {text: analyse(text) for text in terms} == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        ("  \n\t ", []),
        ("The women's Shoes are for a woman", ["women", "shoe", "woman"]),
        ("it\u2019s dad\u2019s mug", ["dad", "mug"]),
        ("u.s.a. 3.5 1,000 3d a.1 t-shirt", ["u.s.a", "3.5", "1,000", "3d", "1", "t", "shirt"]),
        ("snake_case ___ _x_", ["snake_cas", "_x_"]),
        ("note:this 1:2 rock'n'roll", ["note:thi", "1", "2", "rock'n'rol"]),
        ("running runs flies agreed hissing", ["run", "run", "fli", "agre", "hiss"]),
        ("filing possibly apology sky yyy", ["file", "possibl", "apolog", "sky", "yyi"]),
        ('+b -c "red hat"~2 AND x:y* (w)^2 \\', ["b", "c", "red", "hat", "2", "x:y", "w", "2"]),
        ("<b>bold</b> &amp; x<y", ["b", "bold", "b", "amp", "x", "y"]),
        ("caf\u00e9 \u00bc \u2605 \u2014 \u2122", ["caf\u00e9", "\u2605", "\u2122"]),
        ("\u4e2d\u56fd \u30ab\u30bf\u30ab\u30ca", ["\u4e2d", "\u56fd", "\u30ab\u30bf\u30ab\u30ca"]),
        ("\u0e44\u0e17\u0e22\u0e04\u0e33", ["\u0e44\u0e17\u0e22\u0e04\u0e33"]),
        ("\U0001f44d\U0001f3fd\U0001f44d", ["\U0001f44d\U0001f3fd", "\U0001f44d"]),
        ("\U0001f1e9\U0001f1ea", ["\U0001f1e9\U0001f1ea"]),
    ],
)
def test_words_are_cut_as_unicode_says_and_reduced_to_terms(text, terms):
    assert analyse(text) == terms


def test_longer_words_are_cut_as_lucene_does():
    assert [len(term) for term in analyse("x" * 600)] == [255, 255, 90]


@given(st.text(st.characters(max_codepoint=127), max_size=40))
def test_the_fast_way_for_ascii_finds_the_words_that_unicode_defines(text):
    piece, content = _unicode_patterns()
    defined = [word for word in piece.findall(text.lower()) if content.search(word)]
    assert [word for word in words(text) if word.strip("_")] == defined


def test_ascii_text_does_not_load_the_regex_library():
    code = (
        "import sys; from webshop_server.search import analyse; analyse('red shoes');"
        "assert 'regex' not in sys.modules; analyse('caf\\xe9'); assert 'regex' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
