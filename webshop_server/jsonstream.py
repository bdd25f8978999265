"""Go through a JSON file of any size element by element; an error names its line and column."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from .errors import CatalogueError

_CHUNK = 1 << 20
# No element is longer, in characters: a file that is broken need not be read to its end to say so.
_LONGEST = 1 << 24
_SPACE = " \t\r\n"


def elements(path: Path, opening: str) -> Iterator[tuple[str, Any, str]]:
    """Yield what a list ("[") or an object ("{") at the top of a file holds.

    Yields:
        The key ("" in a list), the value, and where it starts: "FILE line 1 column 2".

    Raises:
        CatalogueError: the file cannot be read, is not UTF-8, or is not such JSON.
    """
    try:
        # Bytes that are no text become half characters, so that their place can be named.
        with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
            yield from _elements(_Stream(path, file), opening)
    except OSError as error:
        raise CatalogueError(f"cannot read {path}: {error.strerror or error}") from error


def _elements(stream: _Stream, opening: str) -> Iterator[tuple[str, Any, str]]:
    closing = {"[": "]", "{": "}"}[opening]
    stream.expect(opening)
    if stream.peek() == closing:
        stream.expect(closing)
    else:
        after = ","
        while after == ",":
            key = ""
            if opening == "{":
                key = stream.value()
                stream.expect(":")
            where = stream.mark()
            yield key, stream.value(), where
            after = stream.expect("," + closing)
    if stream.peek():
        raise CatalogueError(f"{stream.where(stream.at)}: expected the end of the file")


class _Stream:
    """A window on the text of a file, from which values are taken."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self._path, self._file = path, file
        self._decoder = json.JSONDecoder()
        self._text, self._ended = "", False
        self.at = 0
        # A place of the window whose line and column are known, so that nothing is counted twice.
        self._marked, self._line, self._column = 0, 1, 1

    def where(self, at: int) -> str:
        """Name a place of the window as one of the file."""
        line, column = self._place(at)
        return f"{self._path} line {line} column {column}"

    def mark(self) -> str:
        """Skip space, and name the place where the next value starts."""
        self.peek()
        self._line, self._column = self._place(self.at)
        self._marked = self.at
        return f"{self._path} line {self._line} column {self._column}"

    def peek(self) -> str:
        """Skip space and return the next character, or "" at the end."""
        while True:
            while self.at < len(self._text) and self._text[self.at] in _SPACE:
                self.at += 1
            if self.at < len(self._text) or self._ended:
                return self._text[self.at : self.at + 1]
            self._more()

    def expect(self, characters: str) -> str:
        """Take the next character, which has to be one of `characters`."""
        found = self.peek()
        if not found or found not in characters:
            expected = " or ".join(map(repr, characters))
            came = repr(found) if found else "the end of the file"
            raise CatalogueError(f"{self.where(self.at)}: expected {expected}, found {came}")
        self.at += 1
        return found

    def value(self) -> Any:
        """Take the next value."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self.at)
            except json.JSONDecodeError as error:
                # Cut off by the window, perhaps.
                if self._ended or len(self._text) - self.at > _LONGEST:
                    raise CatalogueError(
                        f"{self.where(error.pos)}: broken JSON, {error.msg}"
                    ) from error
            except RecursionError as error:
                raise CatalogueError(f"{self.where(self.at)}: too deeply nested") from error
            else:
                if end < len(self._text) or self._ended:
                    self.at = end
                    return value
            self._more()

    def _more(self) -> None:
        self._line, self._column = self._place(self.at)
        rest = self._text[self.at :]
        more = self._file.read(max(_CHUNK, len(rest)))
        self._text, self.at, self._marked, self._ended = rest + more, 0, 0, not more
        try:
            more.encode()
        except UnicodeEncodeError as error:
            where = self.where(len(rest) + error.start)
            raise CatalogueError(f"{where}: expected UTF-8 text, found other bytes") from error

    def _place(self, at: int) -> tuple[int, int]:
        lines = self._text.count("\n", self._marked, at)
        if not lines:
            return self._line, self._column + at - self._marked
        return self._line + lines, at - self._text.rfind("\n", 0, at)
