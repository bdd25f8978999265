"""The space of all strings."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from proxmo_envs import TextSpace


@pytest.mark.parametrize("text", ["", "look", "geh zur Küche", "看", "\0\ud800", "x" * 10_000_000])
def test_every_string_is_an_element(text: str) -> None:
    assert text in TextSpace()


@pytest.mark.parametrize("thing", [None, 3, b"look", ["look"], np.array("look")])
def test_nothing_else_is_an_element(thing: object) -> None:
    assert thing not in TextSpace()


def test_a_sample_is_one_of_the_choices() -> None:
    space = TextSpace(["a", "b", "c"], seed=0)
    assert {space.sample() for _ in range(50)} == {"a", "b", "c"}
    assert {space.sample(mask=[True, False, True]) for _ in range(50)} == {"a", "c"}
    assert {space.sample(probability=[0, 1, 0]) for _ in range(5)} == {"b"}
    assert {space.sample(mask=[1, 1, 0], probability=[0.5, 0, 0.5]) for _ in range(5)} == {"a"}


def test_without_choices_a_sample_is_empty() -> None:
    assert TextSpace().sample() == ""


@pytest.mark.parametrize("mask", [[1], [0, 0]])
def test_a_mask_that_fits_no_choice_is_an_error(mask: list[int]) -> None:
    with pytest.raises(ValueError, match="one entry for each of the 2 choices"):
        TextSpace(["a", "b"]).sample(mask=mask)


def test_the_seed_decides_the_samples() -> None:
    def draw(space: TextSpace) -> list[str]:
        return [space.sample() for _ in range(8)]

    choices = [str(k) for k in range(100)]
    assert draw(TextSpace(choices, seed=1)) == draw(TextSpace(choices, seed=1))
    assert draw(TextSpace(choices, seed=1)) != draw(TextSpace(choices, seed=2))


def test_all_text_spaces_are_equal_and_copies_are_independent() -> None:
    space = TextSpace(["a"])
    twin = copy.deepcopy(space)
    assert space == twin == TextSpace() and space != "text"
    space.choices = ["b"]
    assert twin.sample() == "a"
    assert not space.is_np_flattenable and repr(space) == "TextSpace()"
