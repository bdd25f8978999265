from __future__ import annotations

import json
from pathlib import Path

import pytest

from webshop_server.data import json_stream
from webshop_server.data.json_stream import elements
from webshop_server.errors import CatalogueError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "some.json"


@pytest.mark.parametrize("chunk", [1, 2, 7, 1 << 20])
def test_any_window_gives_the_elements_that_json_gives(
    chunk: int, file: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(json_stream, "_CHUNK", chunk)
    rows = [{"a": 'x"]}\\', "b": [1, -2.5e3, None]}, {}, {"é\n☞": "☞😀" * 9}, [], 12, "s"]
    for text in (json.dumps(rows), json.dumps(rows, indent=1, ensure_ascii=False)):
        file.write_text(text, encoding="utf-8")
        assert [value for _, value, _ in elements(file, "[")] == rows
    file.write_text(" [ ] ")
    assert list(elements(file, "[")) == []
    file.write_text("\ufeff{}", encoding="utf-8")
    assert list(elements(file, "{")) == []
    keyed = dict(zip("abcdef", rows, strict=True))
    file.write_text(json.dumps(keyed, indent=2))
    assert {key: value for key, value, _ in elements(file, "{")} == keyed


@pytest.mark.parametrize("chunk", [3, 1 << 20])
def test_places_are_lines_and_columns_of_the_file(
    chunk: int, file: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(json_stream, "_CHUNK", chunk)
    file.write_text('[{"a":\n 1}, 22,\n\n   "x"]')
    places = [str(place).removeprefix(str(file)) for _, _, place in elements(file, "[")]
    assert places == [" line 1 column 2", " line 2 column 6", " line 4 column 4"]
    file.write_bytes('["ä",\n"bc'.encode() + b'\xff"]')
    with pytest.raises(CatalogueError, match="line 2 column 4: expected UTF-8 text"):
        list(elements(file, "["))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"a": 1},\n {"a": }]', "line 2 column 8: broken JSON, Expecting value"),
        ("[1,\n 2", "line 2 column 3: expected ',' or ']', found the end of the file"),
        ("[1 2]", "line 1 column 4: expected ',' or ']', found '2'"),
        ("[1]\n\nmore", "line 3 column 1: expected the end of the file"),
        ('{"a": 1}', "line 1 column 1: expected '[', found '{'"),
        ("", "line 1 column 1: expected '[', found the end of the file"),
        ('["no end', "line 1 column 2: broken JSON, Unterminated string"),
        ("[" * 100_000, "column 2: too deeply nested"),
    ],
)
def test_a_broken_file_is_named_with_line_and_column(text: str, message: str, file: Path):
    file.write_text(text)
    with pytest.raises(CatalogueError) as error:
        list(elements(file, "["))
    assert str(error.value).startswith(str(file))
    assert message in str(error.value)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path):
    with pytest.raises(CatalogueError, match="cannot read .*: Is a directory"):
        list(elements(tmp_path, "["))


def test_a_broken_element_is_not_searched_to_the_end_of_a_huge_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(json_stream, "_CHUNK", 8)
    monkeypatch.setattr(json_stream, "_LONGEST", 64)
    file.write_text('["' + "x" * 100_000)
    with pytest.raises(CatalogueError, match="Unterminated string"):
        list(elements(file, "["))
