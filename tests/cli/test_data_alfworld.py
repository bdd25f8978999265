"""`proxmo data alfworld` and `proxmo data generate`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from proxmo_envs.alfworld.sources import open_source
from tests.cli.conftest import Outcome
from tests.proxmo_envs.alfworld.small import data_directory

Proxmo = Callable[..., Outcome]


def test_a_directory_is_packed_and_what_is_left_out_is_counted(
    proxmo: Proxmo, tmp_path: Path
) -> None:
    data = data_directory(tmp_path / "data")
    done = proxmo("data", "alfworld", "--from", data, "--out", "new/games.packed")
    assert done.code == 0, done.err
    lines = [line.split() for line in done.out.splitlines()]
    assert ["train", "2", "6"] in lines and ["valid_seen", "1", "0"] in lines
    assert "left out 1: marked unsolvable" in done.out
    assert len(open_source(tmp_path / "new" / "games.packed").ids("train")) == 2


def test_the_source_is_never_written_over(proxmo: Proxmo, tmp_path: Path) -> None:
    (tmp_path / "games.jsonl").write_text("{}\n")
    done = proxmo("data", "alfworld", "--from", "games.jsonl", "--out", "./games.jsonl")
    assert done.code == 2 and "is what --from names" in done.error_line
    assert (tmp_path / "games.jsonl").read_text() == "{}\n"


def test_the_counts_are_printed_as_json(proxmo: Proxmo, tmp_path: Path) -> None:
    data = data_directory(tmp_path / "data")
    done = proxmo("data", "alfworld", "--from", data, "--out", "games.packed", "--json")
    result = json.loads(done.out)
    assert result["splits"]["train"]["games"] == 2
    assert result["splits"]["train"]["left_out"]["no game file"] == 1
    assert result["bytes"] == (tmp_path / "games.packed").stat().st_size


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        ((), 2, "either --from PATH or --download"),
        (("--from", ".", "--download"), 2, "either --from PATH or --download"),
        (("--from", ".", "--url", "http://x/y"), 2, "belong to --download"),
        (("--from", "nowhere"), 2, "nowhere"),
        (("--from", "."), 1, "not an ALFWorld data directory"),
        (("--download", "--url", "http://127.0.0.1:9/a.zip"), 1, "cannot download"),
        (("--download", "--url", "a.zip"), 2, "no http address"),
    ],
)
def test_what_cannot_be_packed_is_one_line(
    proxmo: Proxmo, arguments: tuple[str, ...], code: int, complaint: str
) -> None:
    done = proxmo("data", "alfworld", *arguments, "--out", "x.packed", "--cache", "cache")
    assert done.code == code and complaint in done.error_line
    assert not Path("x.packed").exists()


def test_generated_games_are_written_as_a_data_directory(proxmo: Proxmo, tmp_path: Path) -> None:
    arguments = ("--difficulty", "tiny", "--split", "valid_seen", "--episodes", "6", "--json")
    done = proxmo("data", "generate", "--out", "games", *arguments)
    assert done.code == 0 and json.loads(done.out)["games"] == 6
    source = open_source(tmp_path / "games")
    assert len(source.ids("valid_seen")) == 6
    assert "train" not in [path.name for path in (tmp_path / "games").iterdir()]


def test_a_seed_draws_other_games_and_the_same_seed_the_same(
    proxmo: Proxmo, tmp_path: Path
) -> None:
    def ids(out: str, *arguments: str) -> tuple[str, ...]:
        options = ("--difficulty", "tiny", "--episodes", "3", *arguments)
        assert proxmo("data", "generate", "--out", out, *options).code == 0
        return open_source(tmp_path / out).ids("train")

    first = ids("a", "--seed", "1")
    assert ids("b", "--seed", "1") == first
    assert not set(ids("c", "--seed", "2")) & set(first)
    assert not set(ids("d")) & set(first)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--difficulty", "tinny"), "did you mean tiny"),
        (("--split", "valid"), "did you mean valid_seen"),
        (("--episodes", "0"), "--episodes"),
        (("--episodes", "1000001"), "between 0 and 1,000,000"),
    ],
)
def test_games_that_do_not_exist_are_a_usage_error(
    proxmo: Proxmo, arguments: tuple[str, ...], complaint: str
) -> None:
    done = proxmo("data", "generate", "--out", "games", *arguments)
    assert done.code == 2 and complaint in done.error_line
    assert not Path("games").exists()
