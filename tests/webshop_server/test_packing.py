from __future__ import annotations

import json
import multiprocessing
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.webshop_server.rows import row, wish, write
from webshop_server import packing
from webshop_server.data.packed import PackedCatalogue, is_packed
from webshop_server.data.raw import read_catalogue, read_entries
from webshop_server.errors import CatalogueError, ShopError, UnknownProductError
from webshop_server.packing import pack, search_index
from webshop_server.rules.goals import Goals
from webshop_server.rules.records import GoalKind
from webshop_server.shop import open_catalogue

KINDS: tuple[GoalKind, ...] = ("synthetic", "human")


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of 1,100 products, more than a process keeps decoded; each has a human goal."""
    changes = ({}, {"pricing": "$5.00 - $9.00"}, {"customization_options": ""})
    rows = [row(f"B{n:09d}", name=f"Scarf w{n % 97}x{n}", **changes[n % 3]) for n in range(1100)]
    asked = {"instruction": "a scarf", "instruction_attributes": ["soft wool"]}
    human = {one["asin"]: [asked] for one in rows[::20]}
    return write(tmp_path_factory.mktemp("raw"), rows, human=human)


@pytest.fixture(scope="module")
def packed(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("packed") / "shop"
    pack(read_entries(raw, seed=3), directory, seed=3)
    return directory


def test_a_packed_catalogue_is_the_one_in_memory(raw: Path, packed: Path):
    read, opened = read_catalogue(raw, seed=3), PackedCatalogue(packed)
    assert list(opened) == list(read)
    assert list(opened.entries) == list(read.entries)
    assert list(opened.asins) == list(read.asins)
    assert opened[-1] == read[-1] and opened[5:8] == read[5:8]
    assert opened.entries[5:8] == list(read.entries[5:8])
    assert (opened.seed, opened.manifest_hash) == (3, read.manifest_hash)
    assert list(opened.documents()) == list(read.documents())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("profile", ["original", "clean"])
def test_packed_goals_are_those_made_in_memory(
    kind: GoalKind, profile: str, raw: Path, packed: Path
):
    made = Goals.build(read_catalogue(raw, seed=3), kind, profile)
    opened = Goals.build(PackedCatalogue(packed), kind, profile)
    assert len(made) > 10
    assert list(opened) == list(made)
    assert opened.manifest_hash == made.manifest_hash
    for name in ("train", "validation", "test"):
        assert list(opened.split(name)) == list(made.split(name))


def test_a_packed_index_finds_what_a_new_one_finds(raw: Path, packed: Path):
    made, opened = search_index(read_catalogue(raw)), search_index(PackedCatalogue(packed))
    for product in PackedCatalogue(packed)[:20]:
        found = opened.search(product.title)
        assert found[0] == product.asin
        assert found == made.search(product.title)


def test_every_product_is_found_by_its_id(packed: Path):
    catalogue = PackedCatalogue(packed)
    assert [catalogue.index_of(asin) for asin in catalogue.asins] == list(range(len(catalogue)))
    for unknown in ("B999999999", "A", "", "B0000000000", "b000000001", "\ud800", "B00000000\0"):
        with pytest.raises(UnknownProductError, match="no product has the id"):
            catalogue.index_of(unknown)
    with pytest.raises(IndexError, match="no product 1100; there are 1100"):
        catalogue[1100]


def test_pickling_and_forking_share_the_files(packed: Path):
    catalogue = PackedCatalogue(packed)
    bytes_ = pickle.dumps(Goals.build(catalogue, "human").catalogue)
    assert len(bytes_) < 1000
    assert pickle.loads(bytes_)[7] == catalogue[7]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(catalogue.get, ["B000000001", "B000001099"]) == [
            catalogue[1],
            catalogue[1099],
        ]


def test_progress_is_told(raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(packing, "_REPORT_EVERY", 20)
    stages: list[tuple[str, int]] = []
    entries = read_entries(raw, limit=50)
    pack(entries, tmp_path / "p", progress=lambda stage, done: stages.append((stage, done)))
    told = [("products", 20), ("products", 40), ("goals", 50)]
    assert stages == [*told, ("search", 0), ("search", 20), ("search", 40)]


def test_ids_and_texts_may_be_any_unicode(tmp_path: Path):
    rows = [row("日本é"), row("B1", name="☞ 😀")]
    catalogue = read_catalogue(write(tmp_path / "raw", rows, {"日本é": wish("a")}))
    pack(catalogue.entries, tmp_path / "packed")
    opened = PackedCatalogue(tmp_path / "packed")
    assert opened.get("日本é") == catalogue[0]
    assert list(opened) == list(catalogue)


def test_packing_never_overwrites_and_leaves_nothing_half_done(raw: Path, tmp_path: Path):
    (tmp_path / "there").mkdir()
    with pytest.raises(CatalogueError, match="there exists already; remove it or name another"):
        pack(read_entries(raw, limit=5), tmp_path / "there")
    broken = write(tmp_path / "broken", [row(), row("B000000002", name=7)])
    with pytest.raises(CatalogueError, match="field 'name'"):
        pack(read_entries(broken), tmp_path / "out")
    with pytest.raises(CatalogueError, match="there are no products to pack"):
        pack((), tmp_path / "empty")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken", "there"]


def test_what_is_no_packed_catalogue_is_an_error(raw: Path, packed: Path, tmp_path: Path):
    assert is_packed(packed) and not is_packed(tmp_path)
    with pytest.raises(CatalogueError, match="is no packed catalogue"):
        PackedCatalogue(tmp_path)
    pack(read_entries(raw, limit=5), tmp_path / "old")
    meta = tmp_path / "old" / "meta.json"
    meta.write_text(json.dumps(json.loads(meta.read_text()) | {"format": 0}))
    with pytest.raises(CatalogueError, match="has format 0, expected 2; pack it again with"):
        PackedCatalogue(tmp_path / "old")


def damaged(content: bytes) -> Iterator[bytes | None]:
    """Yield what may have become of a file: gone, empty, cut off, longer, one bit changed."""
    yield from (None, b"", content[:-1], content[: len(content) // 2], content + b"x")
    for place in (0, 9, 66, 100, len(content) // 2, len(content) * 2 // 3, len(content) - 1):
        at = min(place, len(content) - 1)
        yield content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :]


def test_whatever_is_damaged_is_one_error_that_names_the_file(raw: Path, tmp_path: Path):
    pack(read_entries(raw, limit=5), tmp_path / "p")
    for file in [path for path in (tmp_path / "p").rglob("*") if path.is_file()]:
        content = file.read_bytes()
        for wrong in damaged(content):
            file.unlink()
            if wrong is not None:
                file.write_bytes(wrong)
            with pytest.raises(ShopError, match=f"{file.name}.*`proxmo data webshop`"):
                catalogue = open_catalogue(tmp_path / "p")
                search_index(catalogue)
                for kind in ("human", "synthetic"):
                    catalogue.packed_array(f"goals-{kind}")
                list(catalogue)
            file.write_bytes(content)
    assert list(open_catalogue(tmp_path / "p")) == list(read_catalogue(raw, limit=5))
