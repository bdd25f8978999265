"""`proxmo explain` reads a run and prints why its steps got their advantages."""

from __future__ import annotations

import json
import os

import pytest

from tests.cli.conftest import finish, start
from tests.proxmo.reporting.recorded_runs import record, with_credit

OWN_METHOD = """
import numpy as np
from proxmo import credit

@credit.method("last")
def last_step_only(rows: credit.Rows, *, bonus: float = 1.0) -> credit.Parts:
    last = np.append(np.diff(rows.episode) != 0, True)
    episode = np.where(last, bonus * rows.episode_return[rows.episode], 0.0)
    return credit.Parts(episode=episode, step=np.zeros(len(last)))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return record(tmp_path_factory.mktemp("run"), with_credit("proxmo"), iterations=2)


def test_the_overview_leads_to_the_steps(proxmo, run):
    done = proxmo("explain", run)
    assert done.code == 0 and done.err == ""
    assert "iteration             2" in done.out
    assert "Steps furthest from their baseline" in done.out.splitlines()
    found = json.loads(proxmo("explain", run, "--iteration", "1", "--json").out)
    first = found["largest"][0]
    place = ("--episode", first["episode"], "--step", first["step"])
    told = json.loads(proxmo("explain", run, *place, "--json").out)
    assert told["step_advantage"] == first["step_advantage"]
    assert told["iteration"] == 2


def test_a_step_is_explained_with_the_methods_asked_for(proxmo, run):
    place = ("--episode", "2", "--step", "1")
    done = proxmo("explain", run, *place, "--method", "grpo", "--method", "gae")
    assert "at shelf 1" in done.out and "needs value" in done.out and "rloo" not in done.out
    # Titles have a line of their own, places are named in words.
    lines = proxmo("explain", run, *place).out.splitlines()
    assert "Baseline from 3 states, 3 shown" in lines
    assert "By method, default options" in lines
    assert any("episode 0, step 0" in line for line in lines)


def test_half_a_place_and_an_unknown_method_are_refused(proxmo, run):
    done = proxmo("explain", run, "--episode", "1")
    assert done.code == 2 and "--episode and --step together" in done.error_line
    done = proxmo("explain", run, "--method", "grpo")
    assert done.code == 2 and "give --episode and --step too" in done.error_line

    done = proxmo("explain", run, "--episode", "0", "--step", "0", "--method", "gropo")
    assert done.code == 2 and "did you mean grpo" in done.error_line


def test_a_method_of_ones_own_is_found_in_the_working_directory(run, tmp_path):
    (tmp_path / "own_credit.py").write_text(OWN_METHOD)

    def call(*arguments):
        # As of the installed script: Python itself does not look into the working directory.
        env = os.environ | {"PYTHONSAFEPATH": "1"}
        done = finish(start(*arguments, cwd=tmp_path, env=env))
        assert done.code == 0, done.err
        return done.out

    name = "own_credit:last_step_only"
    told = call("explain", run, "--episode", "0", "--step", "1", "--method", name, "--json")
    assert json.loads(told)["by_method"] == {name: 1.0}
    options = ("--method", name, "--set", "credit.options.bonus=2.0")
    assert name in call("train", *options, "--dry-run")


def test_states_without_weight_are_left_out_of_the_table_but_not_of_the_data(proxmo, tmp_path):
    cold = record(tmp_path / "run", with_credit("proxmo", tau=0.01))
    place = ("--episode", "2", "--step", "1")
    assert "Baseline from 3 states, 1 shown" in proxmo("explain", cold, *place).out
    assert len(json.loads(proxmo("explain", cold, *place, "--json").out)["neighbours"]) == 3
