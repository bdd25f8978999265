"""The benchmark commands print what they measured, however little that is."""

from __future__ import annotations

import json

import pytest

from tests.fakes import COUNTER, save_tiny_model

CREDIT = ("credit", "--groups", "2", "--episodes", "2", "--steps", "5", "--repeats", "1")
SEARCH = ("search", "--queries", "3", "--sizes")
ENV = ("env", "--steps", "100", "--games")
LOAD = ("webshop-http", "--seconds", "1", "--sessions", "3", "--workers", "1")
LOAD += ("--difficulty", "tiny")


@pytest.fixture
def bench(proxmo):
    """Runs a benchmark that works; returns its table or, with --json, the object."""

    def call(*arguments):
        done = proxmo("bench", *arguments)
        assert done.code == 0, done.err
        return json.loads(done.out) if "--json" in arguments else done.out

    return call


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ((*CREDIT, "--sizes", "80", "--top-k", "4"), ("plain dense", "80", "MB", "1.000")),
        ((*SEARCH, "40"), ("plain p50", "on disk", "100%")),
        (LOAD, ("pages", "times the original's", "none")),
    ],
)
def test_a_table_names_what_was_measured(bench, arguments, parts):
    text = bench(*arguments)
    assert [part for part in parts if part not in text] == []


def test_credit_as_json(bench):
    found = bench(*CREDIT, "--sizes", "", "--json")
    assert [one["method"] for one in found["methods"]] == ["gigpo", "proxmo"]
    assert all(one["rows"] == 20 and one["ratio"] > 0 for one in found["methods"])
    assert found["growth"] == []


def test_search_as_json(bench):
    found = bench(*SEARCH, "30,60", "--json")
    assert [one["documents"] for one in found] == [30, 60]
    assert all(one["same"] == 1 and one["disk_mb"] > 0 for one in found)


def test_training_rollouts_and_memory_are_printed(bench, tmp_path):
    pytest.importorskip("torch")
    settings = (
        f"env.id={COUNTER}",
        "env.kwargs.free=false",
        "prompt.style=terse",
        "prompt.max_prompt_tokens=200",
        "sampling.max_new_tokens=10",
    )
    few = ("--tasks", 2, "--group-size", 2, "--iterations", 2, "--repeats", 1, "--memory", 2)
    sets = [part for one in settings for part in ("--set", one)]
    text = bench("train", "--model", save_tiny_model(tmp_path / "model"), *few, *sets)
    training, rollout = text.split("rollout", 1)
    assert "tokens per CPU s" in training and "proxmo" in training
    assert "until the slowest ends" in rollout and "memory: " in rollout


def test_the_table_of_environments_has_a_row_for_every_size(bench):
    text = bench(*ENV, "20")
    rows = [line.split() for line in text.splitlines()]
    assert [row[0] for row in rows[1:5]] == ["tiny", "small", "default", "large"]
    assert rows[0][:2] == ["size", "actions"] and len({len(row) for row in rows[1:5]}) == 1
    assert "over 20 games (large)" in text


def test_further_data_are_measured_as_json(bench):
    result = bench(*ENV, "0", "--data", "generated", "--json")
    assert [size["size"] for size in result["sizes"]][-1] == "data"
    assert all(size["steps_per_second"] > 0 for size in result["sizes"])
    assert result["beside"] is None and result["sizes"][-1]["growth_bytes"] is None


@pytest.mark.parametrize("surface", ["pages", "api"])
def test_load_as_json(bench, surface):
    found = bench(*LOAD, "--surface", surface, "--json")
    assert found["errors"] == {} and found["surface"] == surface
    assert found["workers"] == 1 and found["sessions"] == 3
    assert found["requests_per_s"] == found["requests"] >= found["purchases"] >= 1
    assert 0 < found["p50_ms"] <= found["p99_ms"] < 1000
    assert found["memory_mb"] > 10


def test_answers_that_are_errors_are_counted_and_fail_the_command(proxmo, monkeypatch):
    async def look_for_nobody(self) -> None:
        await self.ask("GET", "/api/sessions/nobody")

    monkeypatch.setattr("proxmo_cli.bench.webshop._ApiShopper.leave", look_for_nobody)
    done = proxmo("bench", *LOAD, "--surface", "api", "--json")
    errors = json.loads(done.out)["errors"]
    assert done.code == 1
    assert list(errors) == ["_AnswerError: 404 for GET api"] and errors.popitem()[1] > 0
