from __future__ import annotations

import json
from pathlib import Path

import pytest

from proxmo_cli.main import run
from tests.webshop_server.rows import row, write
from webshop_server.shop import open_catalogue


def test_raw_files_become_a_catalogue_that_opens(tmp_path: Path, capfd: pytest.CaptureFixture):
    human = [{"instruction": "a scarf", "instruction_attributes": ["soft wool"]}]
    rows = [row(), row(), row("B000000002")]
    raw = write(tmp_path / "raw", rows, human={"B000000002": human})
    out = tmp_path / "packed"
    assert not run(["data", "webshop", "--from", str(raw), "--out", str(out), "--json"])
    said = capfd.readouterr()
    result = json.loads(said.out)
    assert (result["products"], result["synthetic_goals"], result["human_goals"]) == (2, 4, 1)
    assert result["bytes"] > 1000
    assert "left out 1 of 3 rows" in said.err
    assert "search  0  products" in said.err
    catalogue = open_catalogue(out)
    assert catalogue.manifest_hash == result["manifest_hash"]
    assert catalogue.get("B000000002").title == "Blue Wool Scarf"


def test_a_limit_and_a_seed_are_obeyed(tmp_path: Path, capfd: pytest.CaptureFixture):
    raw = write(tmp_path / "raw", [row(pricing="$1$9"), row("B000000002")])
    command = ["data", "webshop", "--from", str(raw), "--out"]
    run([*command, str(tmp_path / "a"), "--limit", "1", "--seed", "5"])
    assert "1 products, 2 synthetic and 0 human goals" in capfd.readouterr().out
    run([*command, str(tmp_path / "b")])
    first, second = open_catalogue(tmp_path / "a"), open_catalogue(tmp_path / "b")
    assert (len(first), len(second), first.seed) == (1, 2, 5)
    assert first[0].purchase_price != second[0].purchase_price


def test_a_broken_file_is_one_line_with_its_place(tmp_path: Path, capfd: pytest.CaptureFixture):
    raw = write(tmp_path / "raw", [row(), row("B000000002", name=7)])
    assert run(["data", "webshop", "--from", str(raw), "--out", str(tmp_path / "out")]) == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("error: ") and "line 3 column 1 (product 2): field 'name'" in line
    assert not (tmp_path / "out").exists()
