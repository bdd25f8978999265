"""Rows of metrics survive crashes, resumed runs and values that JSON cannot hold."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from proxmo.errors import DataError
from proxmo.training.metrics_file import IterationFile, read_rows


def iterations(path: Path) -> list[int]:
    return [row["iteration"] for row in read_rows(path)]


def test_rows_come_back_as_they_were_written(tmp_path: Path):
    sink = IterationFile(tmp_path / "metrics.jsonl")
    sink.append(1, {"loss/kl": 0.1 + 0.2, "train/error_episodes": 3})
    sink.append(2, {"loss/kl": 1e-300})
    assert read_rows(sink.path) == [
        {"iteration": 1, "loss/kl": 0.1 + 0.2, "train/error_episodes": 3},
        {"iteration": 2, "loss/kl": 1e-300},
    ]


def test_numbers_of_numpy_become_numbers_and_what_is_not_finite_null(tmp_path: Path):
    sink = IterationFile(tmp_path / "metrics.jsonl")
    sink.truncate_after(3)  # before there is a file
    sink.append(1, {"a": np.float32(0.5), "b": np.int64(3), "c": np.nan, "d": float("-inf")})
    row = json.loads(sink.path.read_text(), parse_constant=lambda name: pytest.fail(name))
    assert row == {"iteration": 1, "a": 0.5, "b": 3, "c": None, "d": None}


def test_a_resumed_run_drops_the_rows_it_will_measure_again(tmp_path: Path):
    sink = IterationFile(tmp_path / "metrics.jsonl")
    for iteration in (1, 2, 3, 4):
        sink.append(iteration, {"loss/kl": iteration / 3})
    sink.truncate_after(2)
    assert iterations(sink.path) == [1, 2]
    assert read_rows(sink.path)[1]["loss/kl"] == 2 / 3
    sink.append(3, {})
    assert iterations(sink.path) == [1, 2, 3]
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_a_row_a_killed_process_left_half_written_is_cut_off(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"iteration": 1}\n{"iteration": 2, "loss/k')
    assert iterations(path) == [1]
    IterationFile(path).append(2, {})
    assert iterations(path) == [1, 2]


def test_a_broken_line_is_an_error_that_names_it(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"iteration": 1}\nnot json\n')
    with pytest.raises(DataError, match=r"line 2 of .*metrics.jsonl is not JSON"):
        read_rows(path)
    path.write_text('{"step": 1}\n')
    with pytest.raises(DataError, match="line 1 of .* no whole 'iteration'"):
        read_rows(path)


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path):
    with pytest.raises(DataError, match=r"absent\.jsonl"):
        read_rows(tmp_path / "absent.jsonl")
