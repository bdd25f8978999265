"""`proxmo bench credit` measures what it says, on a batch as small as one likes."""

from __future__ import annotations

import json

SMALL = ("--groups", "2", "--episodes", "2", "--steps", "5", "--repeats", "1")


def test_the_tables_name_times_ratios_and_the_growth(proxmo):
    done = proxmo("bench", "credit", *SMALL, "--sizes", "80", "--top-k", "4")
    assert done.code == 0
    methods, growth = done.out.split("states", 1)
    assert "plain dense" in methods and "gigpo" in methods and "proxmo" in methods
    assert "80" in growth and "MB" in growth and "1.000" in growth


def test_the_same_as_json(proxmo):
    done = proxmo("bench", "credit", *SMALL, "--sizes", "", "--json")
    found = json.loads(done.out)
    assert [one["method"] for one in found["methods"]] == ["gigpo", "proxmo"]
    assert all(one["rows"] == 20 and one["ratio"] > 0 for one in found["methods"])
    assert found["growth"] == []


def test_sizes_that_are_none_are_refused(proxmo):
    for wrong in ("many", "0", "10,-1", "inf"):
        done = proxmo("bench", "credit", "--sizes", wrong)
        assert done.code == 2
        assert "expected numbers like 1000,100000" in done.error_line
