"""`proxmo bench env`."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.cli.conftest import Outcome

SHORT = ("--steps", "100", "--games", "0")


def test_a_table_has_a_row_for_every_size(proxmo: Callable[..., Outcome]) -> None:
    done = proxmo("bench", "env", *SHORT, "--games", "20")
    assert done.code == 0, done.err
    rows = [line.split() for line in done.out.splitlines()]
    assert [row[0] for row in rows[1:5]] == ["tiny", "small", "default", "large"]
    assert rows[0][:2] == ["size", "actions"] and len({len(row) for row in rows[1:5]}) == 1
    assert "over 20 games (large)" in done.out


def test_further_data_are_measured_as_json(proxmo: Callable[..., Outcome]) -> None:
    done = proxmo("bench", "env", *SHORT, "--data", "generated", "--json")
    result = json.loads(done.out)
    assert [size["size"] for size in result["sizes"]][-1] == "data"
    assert all(size["steps_per_second"] > 0 for size in result["sizes"])
    assert result["beside"] is None


def test_what_cannot_be_measured_is_one_line(proxmo: Callable[..., Outcome]) -> None:
    done = proxmo("bench", "env", "--env", "CartPole-v1")
    assert done.code == 2 and "known: ALFWorld-v0" in done.err
    done = proxmo("bench", "env", "--original", "python")
    assert done.code == 2 and "--original needs --data DIR" in done.err
