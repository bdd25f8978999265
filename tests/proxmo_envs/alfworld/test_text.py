"""The sentences of the world that need more than a name."""

from __future__ import annotations

import pytest

from proxmo_envs.alfworld.text import item_state, listing, translate


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ([], "nothing"),
        (["a mug 1"], "a mug 1"),
        (["a mug 2", "a mug 1"], "a mug 2, and a mug 1"),
        (["a", "b", "c"], "a, b, and c"),
    ],
)
def test_lists_have_a_comma_before_and(names: list[str], told: str) -> None:
    assert listing(names) == told


@pytest.mark.parametrize(
    ("states", "told"),
    [
        # Both only where a game starts so: heating undoes cooling.
        ("hot cool", "This is a hot egg 1."),
        ("hot cool clean sliced", "This is a hot and clean sliced egg 1."),
    ],
)
def test_the_state_of_a_held_thing_is_told_in_the_words_of_the_original(
    states: str, told: str
) -> None:
    flags = {state: state in states.split() for state in ("hot", "cool", "clean", "sliced")}
    assert item_state("egg 1", **flags) == told


@pytest.mark.parametrize(
    ("command", "grammar", "ours"),
    [
        ("put mug 1 in/on desk 1", "move", "move mug 1 to desk 1"),
        ("  move mug 1 to desk 1 ", "put", "put mug 1 in/on desk 1"),
        ("move mug 1 to desk 1", "move", None),
        ("put mug 1 on desk 1", "move", None),
        ("look", "put", None),
        ("", "move", None),
    ],
)
def test_commands_of_the_other_grammar_are_translated(
    command: str, grammar: str, ours: str | None
) -> None:
    assert translate(command, grammar) == ours  # type: ignore[arg-type]
