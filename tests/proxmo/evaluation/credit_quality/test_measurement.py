"""Measurements: resumed, shared between processes, refused where settings differ."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from proxmo.config import EnvConfig
from proxmo.errors import DataError, UsageError
from proxmo.evaluation.credit_quality import Settings, compare, measure
from proxmo.evaluation.credit_quality.measurement import task_noise

SMALL = Settings(
    EnvConfig(id="ALFWorld-v0", data="generated", max_steps=8, kwargs={"difficulty": "tiny"}),
    tasks=3,
    group_size=2,
    noise=0.3,
    continuations=2,
)


def test_a_measurement_goes_on_where_it_stopped(tmp_path: Path):
    whole = measure(SMALL, tmp_path)
    (tmp_path / "task-0001.json").unlink()
    kept = (tmp_path / "task-0000.json").stat().st_mtime_ns
    seen: list[tuple[int, int]] = []
    again = measure(SMALL, tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(2, 3), (3, 3)]
    assert (tmp_path / "task-0000.json").stat().st_mtime_ns == kept
    for one, other in zip(whole, again, strict=True):
        assert one.action == other.action
        np.testing.assert_array_equal(one.value, other.value)


@pytest.mark.slow
def test_two_processes_measure_what_one_does(tmp_path: Path):
    one = measure(SMALL, tmp_path / "one")
    two = measure(SMALL, tmp_path / "two", workers=2)
    for mine, theirs in zip(one, two, strict=True):
        np.testing.assert_array_equal(mine.value, theirs.value)


def test_the_shop_is_measured_too(tmp_path: Path):
    env = EnvConfig(id="WebShop-v0", data="bundled", max_steps=6, kwargs={"difficulty": "tiny"})
    truths = measure(dataclasses.replace(SMALL, env=env, noise=0.5), tmp_path)
    found = compare(truths, ["proxmo"])
    assert found.steps == sum(len(truth.step) for truth in truths)
    assert found.oracle.cosine > found.trivial["trivial: reward alone"].cosine


def test_another_measurement_in_the_same_directory_is_refused(tmp_path: Path):
    measure(SMALL, tmp_path)
    with pytest.raises(UsageError, match="other settings"):
        measure(dataclasses.replace(SMALL, noise=0.4), tmp_path)


def test_a_damaged_file_is_named(tmp_path: Path):
    measure(SMALL, tmp_path)
    path = tmp_path / "task-0002.json"
    whole = json.loads(path.read_text())
    changes = [{"value": whole["value"][1:]}, {"reward": whole["reward"][1:]}, {"episode": []}]
    changes += [{"step": [*whole["step"][:-1], 77]}, {"expert": [True]}]
    changes += [{"reward": [float("nan"), *whole["reward"][1:]]}]
    for text in ("{", "[]", *(json.dumps({**whole, **change}) for change in changes)):
        path.write_text(text)
        with pytest.raises(DataError, match=r"task-0002\.json is damaged"):
            measure(SMALL, tmp_path)


def test_settings_that_are_no_text_are_those_of_another_measurement(tmp_path: Path):
    (tmp_path / "settings.json").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="other settings"):
        measure(SMALL, tmp_path)


@pytest.mark.slow
def test_processes_import_the_module_that_registers_an_environment_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The processes start anew: they know nothing of what this one has imported."""
    (tmp_path / "household_of_mine.py").write_text(
        "import gymnasium\n"
        "gymnasium.register(id='Mine-v0', max_episode_steps=8,\n"
        "    entry_point='proxmo_envs.alfworld.env:ALFWorldEnv')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    env = dataclasses.replace(SMALL.env, id="household_of_mine:Mine-v0", max_steps=None)
    mine = dataclasses.replace(SMALL, env=env)
    assert len(measure(mine, tmp_path / "out", workers=2)) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"continuations": 3}, "continuations is 3; expected an even number"),
        ({"continuations": 0}, "continuations is 0"),
        ({"tasks": 1}, "tasks is 1; expected at least 2"),
        ({"group_size": 1}, "group_size is 1; expected at least 2"),
    ],
)
def test_sizes_that_tell_nothing_are_refused(tmp_path: Path, change: dict[str, int], message: str):
    with pytest.raises(UsageError, match=message):
        measure(dataclasses.replace(SMALL, **change), tmp_path)  # type: ignore[arg-type]


def test_the_noise_of_tasks_spreads_around_the_mean():
    drawn = [task_noise(0.5, 0, f"task {i}") for i in range(400)]
    assert np.mean(drawn) == pytest.approx(0.5, abs=0.03)
    assert np.std(drawn) == pytest.approx(0.12, abs=0.02)
    assert task_noise(0.99, 0, "a") <= 0.97


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are read from /proc")
def test_the_processes_end_when_the_one_that_started_them_is_killed(tmp_path: Path):
    code = (
        "import dataclasses\n"
        "from pathlib import Path\n"
        "from proxmo.evaluation.credit_quality import measure\n"
        "from tests.proxmo.evaluation.credit_quality.test_measurement import SMALL\n"
        "if __name__ == '__main__':\n"
        "    many = dataclasses.replace(SMALL, tasks=500)\n"
        f"    measure(many, Path({str(tmp_path / 'out')!r}), workers=2)\n"
    )
    (tmp_path / "measures.py").write_text(code)
    repository = str(Path(__file__).parents[4])
    environment = {**os.environ, "PYTHONPATH": repository}
    parent = subprocess.Popen([sys.executable, str(tmp_path / "measures.py")], env=environment)
    deadline = time.monotonic() + 120
    while not (tmp_path / "out" / "task-0002.json").exists():
        assert parent.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    listed = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text()
    children = [Path(f"/proc/{number}") for number in listed.split()]
    assert len(children) >= 2
    parent.kill()
    parent.wait()
    while any(child.exists() for child in children):
        assert time.monotonic() < deadline, "a process outlived the one that started it"
        time.sleep(0.05)
