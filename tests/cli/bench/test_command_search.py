"""`proxmo bench search` measures what it says, on as few documents as one likes."""

from __future__ import annotations

import json


def test_the_table_names_costs_and_the_plain_way(proxmo):
    done = proxmo("bench", "search", "--sizes", "40", "--queries", "3")
    assert done.code == 0
    assert "plain p50" in done.out and "on disk" in done.out and "100%" in done.out


def test_the_same_as_json(proxmo):
    done = proxmo("bench", "search", "--sizes", "30,60", "--queries", "3", "--json")
    assert [one["documents"] for one in json.loads(done.out)] == [30, 60]
    assert all(one["same"] == 1 and one["disk_mb"] > 0 for one in json.loads(done.out))


def test_sizes_that_are_none_are_refused(proxmo):
    for wrong in ("many", "0", "10,-1"):
        done = proxmo("bench", "search", "--sizes", wrong)
        assert done.code == 2
        assert "expected numbers like 1000,100000" in done.error_line
