"""The benchmark commands print what they measured, however little that is."""

from __future__ import annotations

import json

import pytest

from tests.fakes import COUNTER, save_tiny_model

CREDIT = ("--groups", "2", "--episodes", "2", "--steps", "5", "--repeats", "1")
ENV = ("--steps", "100", "--games", "0")
LOAD = ("--seconds", "1", "--sessions", "3", "--workers", "1", "--difficulty", "tiny")


@pytest.mark.parametrize("name", ["credit", "search"])
@pytest.mark.parametrize("sizes", ["many", "0", "10,-1", "inf"])
def test_sizes_that_are_none_are_refused(proxmo, name, sizes):
    done = proxmo("bench", name, "--sizes", sizes)
    assert done.code == 2
    assert "expected numbers like 1000,100000" in done.error_line


def test_credit_tables_name_times_ratios_and_the_growth(proxmo):
    done = proxmo("bench", "credit", *CREDIT, "--sizes", "80", "--top-k", "4")
    assert done.code == 0
    methods, growth = done.out.split("states", 1)
    assert "plain dense" in methods and "gigpo" in methods and "proxmo" in methods
    assert "80" in growth and "MB" in growth and "1.000" in growth


def test_credit_as_json(proxmo):
    done = proxmo("bench", "credit", *CREDIT, "--sizes", "", "--json")
    found = json.loads(done.out)
    assert [one["method"] for one in found["methods"]] == ["gigpo", "proxmo"]
    assert all(one["rows"] == 20 and one["ratio"] > 0 for one in found["methods"])
    assert found["growth"] == []


def test_training_rollouts_and_memory_are_printed(proxmo, tmp_path):
    pytest.importorskip("torch")
    model = save_tiny_model(tmp_path / "model")
    settings = {
        "env.id": COUNTER,
        "env.kwargs.free": "false",
        "prompt.style": "terse",
        "prompt.max_prompt_tokens": 200,
        "sampling.max_new_tokens": 10,
    }
    few = ("--tasks", 2, "--group-size", 2, "--iterations", 2, "--repeats", 1, "--memory", 2)
    sets = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    done = proxmo("bench", "train", "--model", model, *few, *sets)
    assert done.code == 0, done.err
    training, rollout = done.out.split("rollout", 1)
    assert "tokens per CPU s" in training and "proxmo" in training
    assert "until the slowest ends" in rollout and "memory: " in rollout


def test_the_search_table_names_costs_and_the_plain_way(proxmo):
    done = proxmo("bench", "search", "--sizes", "40", "--queries", "3")
    assert done.code == 0
    assert "plain p50" in done.out and "on disk" in done.out and "100%" in done.out


def test_search_as_json(proxmo):
    done = proxmo("bench", "search", "--sizes", "30,60", "--queries", "3", "--json")
    assert [one["documents"] for one in json.loads(done.out)] == [30, 60]
    assert all(one["same"] == 1 and one["disk_mb"] > 0 for one in json.loads(done.out))


def test_the_table_of_environments_has_a_row_for_every_size(proxmo):
    done = proxmo("bench", "env", *ENV, "--games", "20")
    assert done.code == 0, done.err
    rows = [line.split() for line in done.out.splitlines()]
    assert [row[0] for row in rows[1:5]] == ["tiny", "small", "default", "large"]
    assert rows[0][:2] == ["size", "actions"] and len({len(row) for row in rows[1:5]}) == 1
    assert "over 20 games (large)" in done.out


def test_further_data_are_measured_as_json(proxmo):
    done = proxmo("bench", "env", *ENV, "--data", "generated", "--json")
    result = json.loads(done.out)
    assert [size["size"] for size in result["sizes"]][-1] == "data"
    assert all(size["steps_per_second"] > 0 for size in result["sizes"])
    assert result["beside"] is None


def test_an_environment_that_cannot_be_measured_is_one_line(proxmo):
    done = proxmo("bench", "env", "--env", "CartPole-v1")
    assert done.code == 2 and "known: ALFWorld-v0" in done.err
    done = proxmo("bench", "env", "--original", "python")
    assert done.code == 2 and "--original needs --data DIR" in done.err


def test_the_load_table_says_what_the_shoppers_met(proxmo):
    done = proxmo("bench", "webshop-http", *LOAD)
    assert done.code == 0
    assert "times the original's" in done.out and "none" in done.out and "pages" in done.out


@pytest.mark.parametrize("surface", ["pages", "api"])
def test_load_as_json(proxmo, surface):
    done = proxmo("bench", "webshop-http", *LOAD, "--surface", surface, "--json")
    found = json.loads(done.out)
    assert done.code == 0 and found["errors"] == {}
    assert found["surface"] == surface and found["workers"] == 1 and found["sessions"] == 3
    assert found["requests"] >= found["purchases"] >= 1
    assert found["requests_per_s"] == found["requests"]
    assert 0 < found["p50_ms"] <= found["p99_ms"] < 1000
    assert found["memory_mb"] > 10


def test_answers_that_are_errors_are_counted_and_fail_the_command(proxmo, monkeypatch):
    monkeypatch.setattr("proxmo_cli.bench.webshop._ApiShopper.leave", _look_for_nobody)
    done = proxmo("bench", "webshop-http", *LOAD, "--surface", "api", "--json")
    errors = json.loads(done.out)["errors"]
    assert done.code == 1
    assert list(errors) == ["_AnswerError: 404 for GET api"] and errors.popitem()[1] > 0


async def _look_for_nobody(self) -> None:
    await self.ask("GET", "/api/sessions/nobody")
