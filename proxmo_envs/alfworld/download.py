"""Downloads the public archive of official games: resumes, and checks what it got."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, Final

from proxmo_envs.errors import DataNotFoundError, GameFileError, InvalidOptionError, quote

# The address that the original's own `alfworld-download` (0.4.2) uses.
ARCHIVE: Final = (
    "https://github.com/alfworld/alfworld/releases/download/0.4.0/json_2.1.2_tw-pddl.zip"
)
# URL -> size and SHA-256 of its first download: a later one must be the same.
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
    """Download an archive into `folder` and return its path; resumes an interrupted download.

    Args:
        url: address of the archive, http or https.
        folder: keeps the archive, its unfinished part and the lock file.
        sha256: checksum of the archive. The default is that of the lock file, which the first
            download writes.
        progress: called with the number of bytes so far and in total (0: unknown).

    Raises:
        DataNotFoundError: the download fails; another try resumes it.
        GameFileError: the archive does not have its checksum.
        InvalidOptionError: `url` is no address, or `sha256` no checksum.
    """
    if sha256 is not None and not _SHA256.fullmatch(sha256):
        # No archive would match it, and we would delete the one we have.
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
        raise ValueError("expected an object of objects")
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
            f"{url}: expected an archive with the SHA-256 {known}, got {digest}; deleted it. If it "
            f"has been published anew, remove its entry from {LOCK_FILE}"
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
                # Our part is complete already, or it does not belong to this archive.
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
        "there and the same command resumes from them; without a network, copy the archive to this "
        "machine and pass it by --from"
    ) from cause


def _continue(url: str, part: Path, progress: Progress) -> None:
    """Append the rest to `part`, or start again if the server cannot resume."""
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
