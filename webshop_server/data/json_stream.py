"""Read a JSON file of any size element by element; an error names its line and column.

Not ijson: it is as fast, but it loses lone surrogates, names no line, and a file of 100,000 opening
brackets makes it take all memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from webshop_server.errors import CatalogueError

_CHUNK = 1 << 20
# The longest element in characters: we report a broken one without reading a huge file to its end.
_LONGEST = 1 << 24
_SPACE = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file; printed as "FILE line 1 column 2", which reads the file once more."""

    path: Path
    offset: int

    def __str__(self) -> str:
        line, column, left = 1, 1, self.offset
        with _open(self.path) as file:
            while left and (text := file.read(min(left, _CHUNK))):
                left -= len(text)
                line += text.count("\n")
                start = text.rfind("\n") + 1
                column = len(text) - start + (1 if start else column)
        return f"{self.path} line {line} column {column}"


def elements(path: Path, opening: str) -> Iterator[tuple[str, Any, Place]]:
    """Yield the elements of the list ("[") or object ("{") at the top of a file.

    Yields:
        The key ("" in a list), the value, and where the value starts.

    Raises:
        CatalogueError: the file cannot be read, is not UTF-8, or is not such JSON.
    """
    try:
        with _open(path) as file:
            yield from _elements(_Stream(path, file), opening)
    except OSError as error:
        raise CatalogueError(f"cannot read {path}: {error.strerror or error}") from error


def _open(path: Path) -> TextIO:
    # Bytes that are not UTF-8 become half characters, so that an error can name their place.
    return path.open(encoding="utf-8-sig", errors="surrogateescape")


def _elements(stream: _Stream, opening: str) -> Iterator[tuple[str, Any, Place]]:
    closing = {"[": "]", "{": "}"}[opening]
    stream.expect(opening)
    after = stream.expect(closing) if stream.peek() == closing else ","
    while after == ",":
        key = ""
        if opening == "{":
            key = stream.value()
            stream.expect(":")
        stream.peek()
        place = stream.place()
        yield key, stream.value(), place
        after = stream.expect("," + closing)
    if stream.peek():
        raise stream.error("expected the end of the file")


class _Stream:
    """A window on the text of a file, from which values are taken."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self._path, self._file = path, file
        self._decoder = json.JSONDecoder()
        # The window, where it starts in the file, and how much of it is taken.
        self._text, self._start, self._at = "", 0, 0
        self._ended = False

    def place(self, ahead: int = 0) -> Place:
        """Return the place in the file that is `ahead` characters further on."""
        return Place(self._path, self._start + self._at + ahead)

    def error(self, problem: str, ahead: int = 0) -> CatalogueError:
        """Return an error about the text `ahead` characters further on."""
        return CatalogueError(f"{self.place(ahead)}: {problem}")

    def peek(self) -> str:
        """Skip space and return the next character, or "" at the end."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._more()

    def expect(self, characters: str) -> str:
        """Take the next character, which has to be one of `characters`."""
        found = self.peek()
        if not found or found not in characters:
            expected = " or ".join(map(repr, characters))
            shown = repr(found) if found else "the end of the file"
            raise self.error(f"expected {expected}, found {shown}")
        self._at += 1
        return found

    def value(self) -> Any:
        """Take the next value."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                # The window may have cut the value off.
                if self._ended or len(self._text) - self._at > _LONGEST:
                    raise self.error(f"broken JSON, {error.msg}", error.pos - self._at) from error
            except RecursionError as error:
                raise self.error("too deeply nested") from error
            else:
                if end < len(self._text) or self._ended:
                    self._at = end
                    return value
            self._more()

    def _more(self) -> None:
        rest = self._text[self._at :]
        more = self._file.read(max(_CHUNK, len(rest)))
        self._start += self._at
        self._text, self._at, self._ended = rest + more, 0, not more
        try:
            more.encode()
        except UnicodeEncodeError as error:
            problem = "expected UTF-8 text, found other bytes"
            raise self.error(problem, len(rest) + error.start) from error
