"""`proxmo data webshop`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.webshop_server.rows import row, write
from webshop_server.shop import open_catalogue


def test_raw_files_become_a_catalogue_that_opens(proxmo, tmp_path: Path):
    human = [{"instruction": "a scarf", "instruction_attributes": ["soft wool"]}]
    rows = [row(), row(), row("B000000002")]
    raw = write(tmp_path / "raw", rows, human={"B000000002": human})
    done = proxmo("data", "webshop", "--from", raw, "--out", "packed", "--json")
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert (result["products"], result["synthetic_goals"], result["human_goals"]) == (2, 4, 1)
    assert result["bytes"] > 1000
    assert "left out 1 of 3 rows" in done.err and "search  0  products" in done.err
    catalogue = open_catalogue(Path("packed"))
    assert catalogue.manifest_hash == result["manifest_hash"]
    assert catalogue.get("B000000002").title == "Blue Wool Scarf"


def test_a_limit_and_a_seed_are_obeyed(proxmo, tmp_path: Path):
    raw = write(tmp_path / "raw", [row(pricing="$1$9"), row("B000000002")])
    command = ("data", "webshop", "--from", raw, "--out")
    said = proxmo(*command, "a", "--limit", "1", "--seed", "5").out
    assert "1 products, 2 synthetic and 0 human goals" in said
    proxmo(*command, "b")
    first, second = open_catalogue(Path("a")), open_catalogue(Path("b"))
    assert (len(first), len(second), first.seed) == (1, 2, 5)
    assert first[0].purchase_price != second[0].purchase_price


def test_a_broken_file_is_one_line_with_its_place(proxmo, tmp_path: Path):
    raw = write(tmp_path / "raw", [row(), row("B000000002", name=7)])
    done = proxmo("data", "webshop", "--from", raw, "--out", "out")
    assert done.code == 1
    assert "line 3 column 1 (product 2): field 'name'" in done.error_line
    assert not Path("out").exists()
