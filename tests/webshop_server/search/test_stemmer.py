"""Porter's examples; the recorded terms of the analysis test the rest."""

from __future__ import annotations

import pytest

from webshop_server.search.stemmer import stem

STEPS = {
    "step 1, from the paper": """
        caresses caress ponies poni caress caress cats cat feed feed agreed agre plastered plaster
        bled bled motoring motor sing sing conflated conflat troubled troubl sized size hopping hop
        falling fall hissing hiss fizzed fizz failing fail filing file happy happi sky sky
    """,
    "steps 2 to 5, from the paper, each carried to the end": """
        relational relat conditional condit rational ration vietnamization vietnam operator oper
        hopefulness hope triplicate triplic formative form electrical electr replacement replac
        adoption adopt communism commun probate probat rate rate cease ceas controll control
        roll roll
    """,
    "the two endings added later; without them: possibli, apologi": """
        possibly possibl apology apolog
    """,
    "too short to stem, or not English": "is is ss ss s s 3.5s 3.5 yyy yyi",
}


@pytest.mark.parametrize("step", STEPS)
def test_words_have_the_stems_of_porter_extended(step: str) -> None:
    words = STEPS[step].split()
    assert [stem(word) for word in words[::2]] == words[1::2]
