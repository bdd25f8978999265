"""How actions are read."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.webshop_server.recorded import unit_cases
from webshop_server.rules.actions import parse_clean, parse_original


def test_the_original_reads_actions_as_recorded(shared: Path) -> None:
    cases = unit_cases(shared, "parse_action")
    assert len(cases) > 20
    for case in cases:
        name, argument = case["expected"]
        lower = None if argument is None else argument.lower()
        assert parse_original(case["input"]) == (name, lower), case


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("search[red shoes]", ("search", "red shoes")),
        ("  click[Buy  Now]\n", ("click", "buy now")),
        ("click[pack [2]]", ("click", "pack [2]")),
        ("click[[1]]", ("click", "[1]")),
        ("search[a\nb]", ("search", "a b")),
        ("search[]", ("search", "")),
        ("search[ ]", ("search", "")),
        ("search[shoes] please", ("search[shoes] please", None)),
        ("Search[shoes]", ("Search[shoes]", None)),
        ("think[shoes]", ("think[shoes]", None)),
        ("search", ("search", None)),
        ("", ("", None)),
    ],
)
def test_the_clean_profile_reads_the_whole_text(
    action: str, expected: tuple[str, str | None]
) -> None:
    assert parse_clean(action) == expected


@pytest.mark.parametrize("parse", [parse_original, parse_clean])
@pytest.mark.parametrize("text", ["[" * 300_000, "]" * 300_000, "search[" * 50_000, "[]" * 150_000])
def test_brackets_without_end_take_no_time(parse, text: str) -> None:
    start = time.process_time()
    parse(text)
    parse(f"search[{text}]")
    assert time.process_time() - start < 0.5
