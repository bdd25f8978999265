"""`proxmo data alfworld`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from proxmo_envs.alfworld.sources import open_source
from tests.cli.conftest import Outcome
from tests.proxmo_envs.alfworld.small import data_directory

Proxmo = Callable[..., Outcome]


def test_a_directory_is_packed_and_what_is_left_out_is_counted(
    proxmo: Proxmo, tmp_path: Path
) -> None:
    command = ("data", "alfworld", "--from", data_directory(tmp_path / "data"), "--out")
    done = proxmo(*command, "new/games.packed")
    assert done.code == 0, done.err
    lines = [line.split() for line in done.out.splitlines()]
    assert ["train", "2", "6"] in lines and ["valid_seen", "1", "0"] in lines
    assert "left out 1: marked unsolvable" in done.out
    assert len(open_source(tmp_path / "new" / "games.packed").ids("train")) == 2
    result = json.loads(proxmo(*command, "games.packed", "--json").out)
    assert result["splits"]["train"]["games"] == 2
    assert result["splits"]["train"]["left_out"]["no game file"] == 1
    assert result["bytes"] == (tmp_path / "games.packed").stat().st_size


def test_the_source_is_never_written_over(proxmo: Proxmo, tmp_path: Path) -> None:
    (tmp_path / "games.zip").write_text("{}\n")
    done = proxmo("data", "alfworld", "--from", "games.zip", "--out", "./games.zip")
    assert done.code == 2 and "is the file that --from names" in done.error_line
    assert (tmp_path / "games.zip").read_text() == "{}\n"
