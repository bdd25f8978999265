"""Fetches the public archive of official games: resumable, checked, unpacked without surprises."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import shutil
import stat
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Final

from proxmo_envs.errors import DataNotFoundError, GameFileError, InvalidOptionError, quote

# Where the original's own `alfworld-download` (0.4.2) takes the game files from.
ARCHIVE: Final = (
    "https://github.com/alfworld/alfworld/releases/download/0.4.0/json_2.1.2_tw-pddl.zip"
)
# URL -> size and SHA-256 of what came from there first: a later download must be the same.
LOCK_FILE: Final = "archives.lock.json"
_SHA256: Final = re.compile("[0-9a-fA-F]{64}")
_ATTEMPTS: Final = 3
_TIMEOUT_SECONDS: Final = 30
_CHUNK: Final = 1 << 20

Progress = Callable[[int, int], None]


def fetch(
    url: str,
    folder: Path,
    *,
    sha256: str | None = None,
    progress: Progress = lambda done, total: None,
) -> Path:
    """Download an archive into `folder`, going on where an earlier try stopped; return its path.

    Args:
        url: address of the archive, http or https.
        folder: where the archive, its unfinished part and the lock file lie.
        sha256: what the archive must be; otherwise what the lock file says, which the first
            download writes.
        progress: called with the bytes that are there and the bytes there will be (0: unknown).

    Raises:
        DataNotFoundError: it cannot be reached or breaks off; another try goes on from there.
        GameFileError: what came is not what was expected.
        InvalidOptionError: the address or the checksum is not one.
    """
    if sha256 is not None and not _SHA256.fullmatch(sha256):
        # Taken for a checksum it would fit no archive, and the one that is there be deleted.
        raise InvalidOptionError(f"{quote(sha256)} is no SHA-256: 64 hexadecimal digits")
    address = urllib.parse.urlsplit(url)
    name = PurePosixPath(urllib.parse.unquote(address.path)).name
    if address.scheme not in ("https", "http") or not name:
        raise InvalidOptionError(f"{quote(url)} is no http address of a file")
    folder.mkdir(parents=True, exist_ok=True)
    archive, part = folder / name, folder / f"{name}.part"
    lock = _read_lock(folder / LOCK_FILE)
    known = sha256 or lock.get(url, {}).get("sha256")
    if not archive.exists():
        _download(url, part, progress)
        _verify(part, url, known)
        os.replace(part, archive)
    digest = _verify(archive, url, known)
    if url not in lock:
        lock[url] = {"bytes": archive.stat().st_size, "sha256": digest}
        (folder / LOCK_FILE).write_text(json.dumps(lock, indent=1), encoding="utf-8")
    return archive


def _read_lock(path: Path) -> dict[str, Any]:
    try:
        lock = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if isinstance(lock, dict) and all(isinstance(entry, dict) for entry in lock.values()):
            return lock
        raise ValueError("an object of objects was expected")
    except ValueError as error:
        raise GameFileError(f"{path}: the lock file is damaged: {error}; delete it") from error


def _verify(path: Path, url: str, known: str | None) -> str:
    """Return the checksum of a file; delete the file when it is not the known one."""
    checksum = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_CHUNK):
            checksum.update(block)
    digest = checksum.hexdigest()
    if known is not None and digest != known.lower():
        path.unlink()
        raise GameFileError(
            f"{url}: the archive has the SHA-256 {digest}, expected was {known}; it was deleted. "
            f"Where the archive was published anew, remove its entry from {LOCK_FILE}"
        )
    return digest


def _download(url: str, part: Path, progress: Progress) -> None:
    cause: Exception = ConnectionError("no answer")
    for _ in range(_ATTEMPTS):
        before = part.stat().st_size if part.exists() else 0
        try:
            _continue(url, part, progress)
            return
        except urllib.error.HTTPError as error:
            cause = error
            error.close()
            if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
                # What is there is already as long as the archive, or does not belong to it.
                if error.headers.get("Content-Range", "").endswith(f"/{before}"):
                    return
                part.unlink()
            elif error.code < 500:
                break
        except (OSError, http.client.HTTPException) as error:
            cause = error
    there = part.stat().st_size if part.exists() else 0
    raise DataNotFoundError(
        f"cannot download {url}: {getattr(cause, 'reason', None) or cause}. {there:,} bytes are "
        "there and the same command goes on from them; without a network, bring the archive over "
        "and give it with --from"
    ) from cause


def _continue(url: str, part: Path, progress: Progress) -> None:
    """Append to `part` what is missing, or begin anew where the server cannot go on."""
    there = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "proxmo", **({"Range": f"bytes={there}-"} if there else {})}
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response:
        resumed = response.status == http.client.PARTIAL_CONTENT
        there = there if resumed else 0
        length = int(response.headers.get("Content-Length", 0))
        total = there + length if length else 0
        with part.open("ab" if resumed else "wb") as file:
            while block := response.read(_CHUNK):
                file.write(block)
                there += len(block)
                progress(there, total)
    if there < total:
        raise ConnectionError(f"the connection ended after {there:,} of {total:,} bytes")


@contextmanager
def unpacked(archive: Path) -> Iterator[Path]:
    """Unpack a zip archive into a folder beside it, which is deleted afterwards.

    Raises GameFileError for what is no zip archive, is damaged or holds what could leave the folder
    (absolute paths, `..`, links), and DataNotFoundError where the disk is too small for it.
    """
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix="unpacked-") as folder:
        try:
            with zipfile.ZipFile(archive) as content:
                _check(archive, content.infolist())
                content.extractall(folder)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
            # A RuntimeError is an unknown method of compression, or a password.
            raise GameFileError(
                f"{archive}: not a zip archive that can be read, or damaged: {error}; delete it "
                "and download it again"
            ) from error
        yield Path(folder)


def _check(archive: Path, members: Sequence[zipfile.ZipInfo]) -> None:
    """Refuse what could be written outside the folder, or is more than the disk can hold."""
    for member in members:
        _check_place(archive, member)
    size, free = sum(m.file_size for m in members), shutil.disk_usage(archive.parent).free
    if size > free:
        raise DataNotFoundError(
            f"{archive}: unpacking takes {size:,} bytes, {free:,} are free beside it"
        )


def _check_place(archive: Path, member: zipfile.ZipInfo) -> None:
    path = PurePosixPath(member.filename.replace("\\", "/"))
    kind = stat.S_IFMT(member.external_attr >> 16)
    strange = path.is_absolute() or ".." in path.parts or ":" in member.filename
    if strange or kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise GameFileError(
            f"{archive}: nothing was unpacked: {quote(member.filename)} in it is a link or leads "
            "out of the folder"
        )
