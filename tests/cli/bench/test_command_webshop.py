"""`proxmo bench webshop-http` starts a server, loads it and says what it found."""

from __future__ import annotations

import json

import pytest

QUICK = ("--seconds", "1", "--sessions", "3", "--workers", "1", "--difficulty", "tiny")


def test_the_table_says_what_the_shoppers_met(proxmo):
    done = proxmo("bench", "webshop-http", *QUICK)
    assert done.code == 0
    assert "times the original's" in done.out and "none" in done.out and "(pages)" in done.out


@pytest.mark.parametrize("surface", ["pages", "api"])
def test_the_same_as_json(proxmo, surface):
    done = proxmo("bench", "webshop-http", *QUICK, "--surface", surface, "--json")
    found = json.loads(done.out)
    assert done.code == 0 and found["errors"] == {}
    assert found["surface"] == surface and found["workers"] == 1 and found["sessions"] == 3
    assert found["requests"] >= found["purchases"] >= 1
    assert found["requests_per_s"] == found["requests"]
    assert 0 < found["p50_ms"] <= found["p99_ms"] < 1000
    assert found["memory_mb"] > 10


def test_answers_that_are_errors_are_counted_and_fail_the_command(proxmo, monkeypatch):
    monkeypatch.setattr("proxmo_cli.bench.webshop._ApiShopper.leave", _look_for_nobody)
    done = proxmo("bench", "webshop-http", *QUICK, "--surface", "api", "--json")
    errors = json.loads(done.out)["errors"]
    assert done.code == 1
    assert list(errors) == ["_AnswerError: 404 for GET api"] and errors.popitem()[1] > 0


async def _look_for_nobody(self) -> None:
    await self._ask("GET", "/api/sessions/nobody")
