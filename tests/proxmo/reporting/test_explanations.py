"""Recorded credit, explained: the numbers of the record, and where they come from."""

from __future__ import annotations

import gzip
import io
import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from proxmo import credit
from proxmo.config_loading import dump_toml
from proxmo.errors import DataError, UsageError
from proxmo.reporting.explanation_tables import overview_tables, step_tables
from proxmo.reporting.explanations import read_iteration
from tests.proxmo.reporting.recorded_runs import record, with_credit


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    config = with_credit("proxmo", tau=0.5, exclude="self")
    return record(tmp_path_factory.mktemp("run"), config, iterations=12)


def test_the_latest_iteration_is_computed_anew_with_the_options_of_the_run(run):
    recorded = read_iteration(run)
    assert recorded.iteration == 12
    assert recorded.notes == ()
    assert recorded.options == {
        "gamma": 0.95,
        "reward_scale": 1.0,
        "omega": 1.0,
        "tau": 0.5,
        "exclude": "self",
    }
    assert read_iteration(run, 3).iteration == 3


def test_the_neighbours_of_a_step_make_its_baseline_and_are_found_in_the_record(run):
    report = read_iteration(run).explain(2, 1)
    assert (report.observation, report.action, report.outcome) == (
        "at shelf 1",
        "go 1",
        "truncated",
    )
    assert (report.group_size, report.success_rate, report.episode_return) == (2, 0.5, -0.1)
    baseline = sum(one.weight * one.step_return for one in report.neighbours)
    assert report.baseline == pytest.approx(baseline)
    assert report.step_return - baseline == pytest.approx(report.step_advantage, abs=1e-6)
    assert report.advantage == pytest.approx(report.episode_advantage + report.step_advantage)
    first = report.neighbours[0]
    # The step itself is left out: the same state was met twice more, first in episode 0.
    assert (first.text, first.similarity, first.count) == ("at shelf 1", 1.0, 2)
    assert (first.episode, first.step) == (0, 0)
    assert {(one.episode, one.step) for one in report.neighbours} == {(0, 0), (0, 1), (2, 2)}


def test_other_methods_are_compared_where_the_record_has_what_they_need(run):
    report = read_iteration(run).explain(0, 1)
    # GRPO: (1 - 0.45) / 0.7778 of the returns 1 and -0.1.
    assert report.by_method["grpo"] == pytest.approx(np.sqrt(0.5), abs=1e-5)
    assert set(report.by_method) | {"gae", "ppo"} == set(credit.method_names())
    assert report.left_out["gae"] == "needs value, which this run does not record"
    few = read_iteration(run).explain(0, 1, ["rloo"])
    assert few.by_method == {"rloo": pytest.approx(1.1)} and few.left_out == {}


def test_the_overview_lists_groups_and_the_steps_furthest_from_their_baseline(run):
    overview = read_iteration(run).overview(largest=2)
    first, second = overview.groups
    assert (first.episodes, first.wins, first.errors, first.steps) == (2, 1, 1, 5)
    assert (first.first_episode, first.last_episode) == (0, 2)
    assert second.return_mean == 1.0 and second.task_id == "task-1"
    # Golden values of p = 0.5; at p = 1 a success weighs 1.
    assert first.modulation_won == pytest.approx(1.0034, abs=5e-5)
    assert first.modulation_lost == pytest.approx(0.9966, abs=5e-5)
    assert (second.modulation_won, second.modulation_lost) == (1.0, None)
    assert overview.diagnostics["credit/zero_variance_groups"] == 0.5
    sizes = [abs(one.step_advantage) for one in overview.largest]
    assert len(sizes) == 2 and sizes == sorted(sizes, reverse=True)


def test_everything_is_plain_data(run):
    recorded = read_iteration(run)
    for told in (recorded.overview(), recorded.explain(0, 0)):
        assert json.loads(json.dumps(asdict(told)))["method"] == "proxmo"


def test_other_options_than_those_of_the_run_are_noticed(run, tmp_path):
    record(tmp_path / "run", with_credit("proxmo"))
    other = dump_toml(with_credit("proxmo", tau=0.01))
    (tmp_path / "run" / "config.toml").write_text(other)
    recorded = read_iteration(tmp_path / "run")
    assert "advantages differ from the recorded ones by up to" in recorded.notes[0]


@pytest.mark.parametrize(
    ("method", "options", "why"),
    [
        ("proxmo", {"embedding": "policy"}, "hidden states of the policy"),
        ("ppo", {}, "the values of the critic are not recorded"),
        ("gone_module:method", {}, "cannot import 'gone_module'"),
    ],
)
def test_what_cannot_be_computed_anew_is_told_from_the_record(method, options, why, tmp_path):
    path = record(tmp_path / "run", with_credit("proxmo"))
    expected = read_iteration(path).explain(0, 1)
    (path / "config.toml").write_text(dump_toml(with_credit(method, **options)))
    report = read_iteration(path).explain(0, 1)
    assert why in report.notes[0]
    assert report.neighbours == () and report.baseline is None and report.modulation is None
    assert report.advantage == expected.advantage
    assert report.by_method["proxmo"] == expected.by_method["proxmo"]
    assert read_iteration(path).overview().diagnostics == {}


def test_a_method_of_ones_own_that_fails_is_named_and_not_the_record(run, tmp_path, monkeypatch):
    (tmp_path / "my_failing.py").write_text("def method(rows):\n    return {}['gone']\n")
    monkeypatch.syspath_prepend(tmp_path)
    report = read_iteration(run).explain(0, 1, ["my_failing:method", "rloo"])
    assert report.left_out == {"my_failing:method": "KeyError('gone')"}
    assert report.by_method == {"rloo": pytest.approx(1.1)}
    path = record(tmp_path / "run", with_credit("proxmo"))
    (path / "config.toml").write_text(dump_toml(with_credit("my_failing:method")))
    (note,) = read_iteration(path).notes
    assert "cannot be computed anew" in note and "KeyError('gone')" in note


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ((9, 0), "episode 9 is not in iteration 12; expected 0 to 4"),
        ((-1, 0), "episode -1"),
        ((0, 5), "episode 0 has no step 5; expected 0 to 1"),
        ((1, 0), "episode 1 ended in an error .storm., so it got no credit"),
    ],
)
def test_a_step_that_has_no_credit_is_refused(run, place, text):
    with pytest.raises(UsageError, match=text):
        read_iteration(run).explain(*place)


def test_what_is_no_run_or_no_iteration_is_refused(run, tmp_path):
    with pytest.raises(UsageError, match="holds no run"):
        read_iteration(tmp_path)
    with pytest.raises(UsageError, match="iteration 99 is not recorded .* there are 1 to 12"):
        read_iteration(run, 99)
    path = record(tmp_path / "run", with_credit("grpo"))
    file = path / "episodes" / "iteration_000001.jsonl.gz"
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(DataError, match="no record of episodes"):
        read_iteration(path)
    with gzip.open(file, "wt") as lines:
        lines.write('{"outcome": "won"}\n')
    with pytest.raises(DataError, match="no record of episodes"):
        read_iteration(path)
    file.unlink()
    with pytest.raises(DataError, match="no iteration yet"):
        read_iteration(path)


def test_a_method_without_neighbours_is_explained_too(tmp_path):
    report = read_iteration(record(tmp_path / "run", with_credit("grpo"))).explain(0, 0)
    assert report.neighbours == () and report.baseline is None and report.notes == ()
    assert report.step_advantage == 0.0 and report.advantage == report.episode_advantage


@pytest.mark.parametrize("method", ["ppo", "gae"])
def test_a_run_with_a_critic_is_computed_anew_with_its_values(method, tmp_path):
    recorded = read_iteration(record(tmp_path / "run", with_credit(method, lam=0.5)))
    report = recorded.explain(2, 1)
    assert report.notes == () and report.left_out == {}
    assert report.options == {"gamma": 0.95, "reward_scale": 1.0, "lam": 0.5}
    # Step 1 of the third episode is row 3 of the 7 that got credit.
    assert report.value == pytest.approx(3 / 6)
    assert set(report.by_method) == set(credit.method_names())
    assert report.by_method["ppo"] == report.by_method["gae"] != report.advantage
    assert "credit/step_variance" in recorded.overview().diagnostics
    json.dumps([asdict(report), asdict(recorded.overview())])


def test_an_iteration_of_errors_only_has_an_empty_overview(run):
    recorded = read_iteration(run)
    broken = [replace_outcome(one) for one in recorded.episodes]
    found = type(recorded)(with_credit("proxmo"), 1, broken).overview()
    assert found.largest == () and [one.episodes for one in found.groups] == [0, 0]


def replace_outcome(episode: dict) -> dict:
    return {**episode, "outcome": "error"}


def test_the_tables_show_brackets_and_long_texts_as_they_are(run):
    from rich.console import Console

    recorded = read_iteration(run)
    report = recorded.explain(2, 1)
    report = replace(report, observation="[red]x[/red]\n\n" + "far " * 50, notes=("mind [this]",))
    console = Console(width=200, record=True, file=io.StringIO())
    for table in (*step_tables(report, neighbours=1), *overview_tables(recorded.overview())):
        console.print(table)
    text = console.export_text()
    assert "[red]x[/red] far far" in text and "mind [this]" in text
    assert "3 states, 1 shown" in text and "needs value" in text
    assert "singleton_share" in text and "task-1" in text
