"""Downloading an archive from a server on this machine, and packing it."""

from __future__ import annotations

import hashlib
import io
import json
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from proxmo_envs.alfworld.download import LOCK_FILE, fetch
from proxmo_envs.alfworld.official import pack
from proxmo_envs.alfworld.sources import open_source
from proxmo_envs.errors import DataNotFoundError, GameFileError, InvalidOptionError, ProxmoEnvError
from tests.proxmo_envs.alfworld.small import data_directory


class ArchiveServer(HTTPServer):
    """Serves one file; `breaks` says after how many bytes each answer ends (none left: never)."""

    content = b""
    ranges = True
    status = 200
    breaks: list[int]
    asked: list[str | None]


class Handler(BaseHTTPRequestHandler):
    server: ArchiveServer

    def do_GET(self) -> None:
        server, wanted = self.server, self.headers.get("Range")
        server.asked.append(wanted)
        content, first = server.content, 0
        if server.status != 200:
            self.send_error(server.status)
            return
        if wanted and server.ranges:
            first = int(wanted.removeprefix("bytes=").rstrip("-"))
            if first >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206)
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(content) - first))
        self.end_headers()
        self.wfile.write(content[first:][: server.breaks.pop(0) if server.breaks else None])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ArchiveServer]:
    """A server with the archive of a data directory."""
    with ArchiveServer(("127.0.0.1", 0), Handler) as server:
        server.content = archive_of(data_directory(tmp_path / "data" / "json_2.1.1").parent)
        server.breaks, server.asked = [], []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def archive_of(folder: Path) -> bytes:
    """Zip a folder."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return content.getvalue()


def url_of(server: ArchiveServer) -> str:
    return f"http://127.0.0.1:{server.server_port}/release/games.zip"


def test_an_archive_is_fetched_once_and_its_checksum_recorded(
    server: ArchiveServer, tmp_path: Path
) -> None:
    said: list[tuple[int, int]] = []
    path = fetch(url_of(server), tmp_path, progress=lambda done, total: said.append((done, total)))
    assert path == tmp_path / "games.zip" and path.read_bytes() == server.content
    assert said[-1] == (len(server.content), len(server.content))
    lock = json.loads((tmp_path / LOCK_FILE).read_text())
    assert lock == {
        url_of(server): {
            "bytes": len(server.content),
            "sha256": hashlib.sha256(server.content).hexdigest(),
        }
    }
    assert fetch(url_of(server), tmp_path) == path and len(server.asked) == 1


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_that_broke_off_goes_on_where_it_stopped(
    server: ArchiveServer, tmp_path: Path, ranges: bool
) -> None:
    server.breaks, server.ranges = [100, 1000], ranges
    assert fetch(url_of(server), tmp_path).read_bytes() == server.content
    # A server that cannot go on sends everything again, and the first part is thrown away.
    assert server.asked == [None, "bytes=100-", "bytes=1100-" if ranges else "bytes=1000-"]


def test_a_download_that_keeps_breaking_off_keeps_what_it_has_for_the_next_try(
    server: ArchiveServer, tmp_path: Path
) -> None:
    server.breaks = [10, 10, 10]
    with pytest.raises(DataNotFoundError, match=r"30 bytes are there.*--from"):
        fetch(url_of(server), tmp_path)
    assert fetch(url_of(server), tmp_path).read_bytes() == server.content
    assert server.asked[-1] == "bytes=30-"


@pytest.mark.parametrize(("more", "requests"), [(b"", 1), (b"?", 2)])
def test_a_complete_part_is_kept_and_one_that_is_too_long_is_fetched_again(
    server: ArchiveServer, tmp_path: Path, more: bytes, requests: int
) -> None:
    (tmp_path / "games.zip.part").write_bytes(server.content + more)
    assert fetch(url_of(server), tmp_path).read_bytes() == server.content
    assert len(server.asked) == requests


def test_another_archive_at_the_same_address_is_refused(
    server: ArchiveServer, tmp_path: Path
) -> None:
    fetch(url_of(server), tmp_path).unlink()
    server.content = b"something else"
    with pytest.raises(GameFileError, match=f"expected an archive.*{LOCK_FILE}"):
        fetch(url_of(server), tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [LOCK_FILE]


def test_a_checksum_that_is_given_must_hold(server: ArchiveServer, tmp_path: Path) -> None:
    with pytest.raises(GameFileError, match="expected an archive with the SHA-256 0000"):
        fetch(url_of(server), tmp_path, sha256="0" * 64)
    right = hashlib.sha256(server.content).hexdigest().upper()
    archive = fetch(url_of(server), tmp_path, sha256=right)
    for slip in ("", right[1:], f"{right}0", f"sha256:{right}", right.replace(right[0], "g")):
        with pytest.raises(InvalidOptionError, match="is no SHA-256: 64 hexadecimal digits"):
            fetch(url_of(server), tmp_path, sha256=slip)
    assert archive.exists()


def test_an_archive_that_is_not_there_is_one_clear_error(
    server: ArchiveServer, tmp_path: Path
) -> None:
    server.status = 404
    with pytest.raises(DataNotFoundError, match="Not Found"):
        fetch(url_of(server), tmp_path)
    assert len(server.asked) == 1


def test_without_a_network_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataNotFoundError, match=r"cannot download.*refused.*--from"):
        fetch("http://127.0.0.1:9/games.zip", tmp_path)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "games.zip", "http://127.0.0.1", ""])
def test_only_http_addresses_of_files_are_taken(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidOptionError, match="no http address"):
        fetch(url, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_a_damaged_lock_file_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).write_text("[]")
    with pytest.raises(GameFileError, match="lock file is damaged.*delete it"):
        fetch("http://127.0.0.1:9/games.zip", tmp_path)


def test_an_archive_is_packed_like_its_folder(server: ArchiveServer, tmp_path: Path) -> None:
    archive = fetch(url_of(server), tmp_path / "cache")
    listings = pack(archive, tmp_path / "a.packed")
    assert listings == pack(tmp_path / "data", tmp_path / "b.packed")
    assert (tmp_path / "a.packed").read_bytes() == (tmp_path / "b.packed").read_bytes()
    assert len(open_source(tmp_path / "a.packed").ids("train")) == 2
    assert sorted(path.name for path in archive.parent.iterdir()) == [LOCK_FILE, "games.zip"]


def test_what_is_wrong_in_an_archive_is_said_of_the_archive(tmp_path: Path) -> None:
    archive = tmp_path / "games.zip"
    for name, complaint in (("readme", "not an ALFWorld data"), ("train/a/b/c", "no playable")):
        with zipfile.ZipFile(archive, "w") as content:
            content.writestr(name, "")
        with pytest.raises(ProxmoEnvError, match=f"{archive}.*{complaint}"):
            pack(archive, tmp_path / "games.packed")


def test_packing_an_archive_writes_only_the_packed_file(tmp_path: Path) -> None:
    archive = tmp_path / "folder" / "games.zip"
    archive.parent.mkdir()
    data = data_directory(tmp_path / "data")
    with zipfile.ZipFile(archive, "w") as content:
        for path in sorted(data.rglob("*")):
            content.write(path, path.relative_to(data))
        for name in ("../out", "/out", "a/../../out", "..\\out", "C:\\out"):
            content.writestr(name, "/etc/passwd")
    before = set(tmp_path.rglob("*"))
    pack(archive, tmp_path / "games.packed")
    assert set(tmp_path.rglob("*")) - before == {tmp_path / "games.packed"}


def test_a_damaged_archive_is_one_clear_error(tmp_path: Path) -> None:
    whole = archive_of(data_directory(tmp_path / "data"))
    squeezed = io.BytesIO()
    with zipfile.ZipFile(squeezed, "w", zipfile.ZIP_DEFLATED) as content:
        content.writestr("train/pick_and_place_simple-a/b/game.tw-pddl", "abc" * 9_000)
    deflated = squeezed.getvalue()
    data, entry = deflated.find(b"tw-pddl") + 7, deflated.find(b"PK\x01\x02")
    for broken in (
        b"",
        b"no zip",
        whole[:-40],
        whole.replace(b"pddl_problem", b"pddl_broblem"),
        deflated[:data] + b"\xff\xff\xff\xff" + deflated[data + 4 :],
        # A password, and a method of compression that nobody knows.
        deflated[: entry + 8] + b"\x01" + deflated[entry + 9 :],
        deflated[: entry + 10] + b"\x63" + deflated[entry + 11 :],
    ):
        archive = tmp_path / "games.zip"
        archive.write_bytes(broken)
        with pytest.raises(GameFileError, match="download a damaged archive again"):
            pack(archive, tmp_path / "games.packed")
    assert not (tmp_path / "games.packed").exists()
