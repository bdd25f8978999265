from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.webshop_server.recorded import unit_cases
from tests.webshop_server.rows import row, wish, write
from webshop_server.data.products import Entry, decode, encode
from webshop_server.data.raw import (
    clean_option,
    find_files,
    parse_price,
    purchase_price,
    read_catalogue,
    read_entries,
)
from webshop_server.errors import CatalogueError


def read(directory: Path, **options: Any) -> list[Entry]:
    return list(read_entries(directory, **options))


def test_fields_are_read_as_the_shop_shows_them(tmp_path: Path):
    human = [{"instruction": "a scarf.", "instruction_attributes": ["wool"]}]
    human[0]["instruction_options"] = ["navy"]
    human.append({"instruction": "asks for nothing", "instruction_attributes": []})
    (entry,) = read(write(tmp_path, [row()], human={"B000000001": human}))
    product = entry.product
    assert product.title == "Blue Wool Scarf"
    assert product.query == "scarves"
    assert product.attributes == ("soft wool",)
    assert product.options == {"color": ("navy | white",), "size": ("large", "small")}
    assert product.option_images["navy | white"] == "https://example.org/b.jpg"
    assert product.option_images["large"] is None
    assert entry.synthetic is not None and entry.synthetic.text == "Find me a scarf of soft wool"
    assert [wish.options for wish in entry.human] == [("navy",)]


def test_option_values_are_cleaned_as_recorded(shared: Path):
    for case in unit_cases(shared, "option_value_clean"):
        assert clean_option(case["input"]) == case["expected"]


def test_rows_without_a_proper_id_and_repeated_ids_are_left_out(tmp_path: Path):
    rows = [row(), row("nan"), row("B0000000011"), row(name="second"), row("B000000002")]
    said: list[str] = []
    entries = read(write(tmp_path, rows), tell=said.append)
    assert [entry.product.asin for entry in entries] == ["B000000001", "B000000002"]
    assert entries[0].product.title == "Blue Wool Scarf"
    assert said == [f"{tmp_path}: left out 3 of 5 rows: no proper id, or a repeated one"]


def test_the_limit_counts_rows(tmp_path: Path):
    directory = write(tmp_path, [row(), row(), row("B000000002"), row("B000000003")])
    assert [one.product.asin for one in read(directory, limit=3)] == ["B000000001", "B000000002"]


def test_what_a_product_may_lack_is_empty(tmp_path: Path):
    lacking = ("full_description", "small_description", "images", "pricing")
    changes = dict.fromkeys((*lacking, "customization_options"))
    (entry,) = read(write(tmp_path, [row(**changes)], attributes={}))
    product = entry.product
    assert (product.description, product.bullets, product.image) == ("", (), "")
    assert (product.options, product.price_tag) == ({}, "$100.0")
    assert (product.attributes, entry.synthetic, entry.human) == (("DUMMY_ATTR",), None, ())


def test_odd_options_are_read_as_the_original_does(tmp_path: Path):
    options = {"Color": None, "SIZE": [{"value": "S"}], "size": [{"value": "M"}], "fit": []}
    (entry,) = read(write(tmp_path, [row(customization_options=options)]))
    assert entry.product.options == {"size": ("m",), "fit": ()}


@pytest.mark.parametrize("name", ["asin", "name", "category", "query", "product_category"])
def test_a_missing_field_is_named_with_its_line(name: str, tmp_path: Path):
    bad = row("B000000002")
    del bad[name]
    message = rf"items_shuffle.json line 3 column 1 \(product 2\): field '{name}' is missing"
    with pytest.raises(CatalogueError, match=message):
        read(write(tmp_path, [row(), bad]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": 7}, "field 'name' is 7; expected a text"),
        ({"pricing": 7}, "field 'pricing' is 7; expected a text"),
        ({"asin": "B\ud800"}, r"field 'asin' is 'B\\ud800'; expected a text of printable"),
        ({"asin": "B0\0"}, r"field 'asin' is 'B0\\x00'; expected a text of printable"),
        ({"small_description": [1]}, r"field 'small_description' is \[1\]; expected a list of"),
        ({"images": "a.jpg"}, "field 'images' is 'a.jpg'; expected a list of texts"),
        ({"pricing": "cheap"}, "price 'cheap' cannot be read; expected a text such as"),
        (
            {"customization_options": {"size": [{}]}},
            "field 'customization_options' is .* expected an object of lists",
        ),
        (
            {"customization_options": ["size"]},
            "field 'customization_options' is .* expected an object",
        ),
    ],
)
def test_a_field_of_the_wrong_form_is_named_with_its_line(
    changes: dict[str, Any], message: str, tmp_path: Path
):
    with pytest.raises(CatalogueError, match=rf"line 2 column 1 \(product 1\): {message}"):
        read(write(tmp_path, [row(**changes)]))


def test_rows_that_are_no_objects_are_errors(tmp_path: Path):
    with pytest.raises(CatalogueError, match=r"\(product 2\): row is 7; expected an object"):
        read(write(tmp_path, [row(), 7], attributes={}))
    with pytest.raises(CatalogueError, match=r"items_ins_v2.json line 1 column 8 \(B1\): row is"):
        read(write(tmp_path, [row()], attributes={"B1": 7}))
    with pytest.raises(CatalogueError, match=r"items_human_ins.json .*expected a list of instr"):
        read(write(tmp_path, [row()], human={"B1": 7}))


def test_missing_files_are_named(tmp_path: Path):
    with pytest.raises(CatalogueError, match="no file .*items_shuffle.json; expected a directory"):
        find_files(tmp_path)
    write(tmp_path, [row()])
    assert find_files(tmp_path)[2] is None
    (tmp_path / "items_ins_v2.json").unlink()
    with pytest.raises(CatalogueError, match="no file .*items_ins_v2.json"):
        read_catalogue(tmp_path)


def test_the_complete_set_comes_before_the_small_one(tmp_path: Path):
    write(tmp_path, [row()])
    for name in ("items_shuffle", "items_ins_v2"):
        (tmp_path / f"{name}_1000.json").write_text("[]" if name == "items_shuffle" else "{}")
    assert len(read_catalogue(tmp_path)) == 1
    assert len(read_catalogue(tmp_path / "items_shuffle_1000.json")) == 0


def test_encoding_an_entry_loses_nothing(tmp_path: Path):
    odd = row(name='"Ä"\n\ud800 ☞', pricing="$1$2", full_description="\x00\u2028")
    human = {"B000000001": [{"instruction": "x", "instruction_attributes": ["a"]}]}
    directory = write(tmp_path, [odd], {"B000000001": wish("a", "b")}, human)
    (entry,) = read(directory)
    line = encode(entry)
    assert decode(line) == entry
    assert b"\n" not in line


def test_price_texts_are_read_as_recorded(shared: Path):
    for case in unit_cases(shared, "pricing"):
        if "exception" in case:
            with pytest.raises(ValueError):
                parse_price(case["input"])
            continue
        pricing, tag = parse_price(case["input"])
        expected = case["expected"]
        assert (list(pricing), tag) == (expected["pricing"], expected["price_tag"])
        assert purchase_price(pricing, random.Random(1)) == expected["sampled_price"]


def test_only_a_price_range_draws_a_number():
    rng = random.Random(0)
    state = rng.getstate()
    assert purchase_price((7.0,), rng) == 7.0 and rng.getstate() == state
    assert 3.0 <= purchase_price((4.0, 3.0), rng) <= 4.0 and rng.getstate() != state
