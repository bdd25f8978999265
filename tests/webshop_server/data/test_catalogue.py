from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.webshop_server.recorded import PRODUCT_FIELDS, lines
from tests.webshop_server.rows import row, write
from webshop_server.data.raw import read_catalogue
from webshop_server.errors import CatalogueError, UnknownProductError
from webshop_server.packing import pack
from webshop_server.shop import open_catalogue


@pytest.mark.parametrize("name", ["real1000", "fict300"])
def test_products_prices_and_indexed_texts_are_those_recorded(name: str, shared: Path):
    data = shared / "webshop" / "data" / name
    loaded = list(lines(data / "loaded_products.jsonl.gz"))
    catalogue = read_catalogue(data)
    assert len(catalogue) == len(loaded) > 300
    for product, expected in zip(catalogue, loaded, strict=True):
        ours = {theirs: getattr(product, name) for theirs, name in PRODUCT_FIELDS.items()}
        # As JSON: tuples become lists, and the order of the options counts.
        assert json.dumps(ours) == json.dumps({name: expected[name] for name in PRODUCT_FIELDS})
    prices = {product.asin: product.purchase_price for product in catalogue}
    assert prices == json.loads((data / "prices_seed0.json").read_text())
    indexed = {one["id"]: one["contents"] for one in lines(data / "index_docs.jsonl.gz")}
    assert dict(zip(catalogue.asins, catalogue.documents(), strict=True)) == indexed


def test_a_product_is_found_by_its_id(tmp_path: Path):
    catalogue = read_catalogue(write(tmp_path, [row("B000000002"), row("B000000001")]))
    assert catalogue.index_of("B000000001") == 1
    assert catalogue.get("B000000002") is catalogue[0]
    assert [product.asin for product in catalogue[-1:]] == ["B000000001"]
    with pytest.raises(UnknownProductError, match="no product has the id 'b000000001'"):
        catalogue.get("b000000001")


def test_the_manifest_hash_tells_contents_and_prices_apart(tmp_path: Path):
    rows = [row(pricing="$1$9"), row("B000000002")]
    directory = write(tmp_path, rows)
    first = read_catalogue(directory).manifest_hash
    assert read_catalogue(directory).manifest_hash == first
    assert read_catalogue(directory, seed=1).manifest_hash != first
    rows[1]["name"] = "Red Wool Scarf"
    assert read_catalogue(write(tmp_path, rows)).manifest_hash != first


def test_a_source_is_raw_files_or_packed_and_has_to_exist(tmp_path: Path):
    raw = write(tmp_path / "raw", [row(), row("B000000002")])
    pack(read_catalogue(raw).entries, tmp_path / "packed")
    assert open_catalogue(raw).entries == tuple(open_catalogue(tmp_path / "packed").entries)
    with pytest.raises(CatalogueError, match="no catalogue at .*nothing; expected 'bundled'"):
        open_catalogue(tmp_path / "nothing")
