"""A CSV row by row, exactly: what DuckDB refuses or would read in silence otherwise.

A cell is the text between two delimiters; an unquoted empty one is None, a quoted one ''. A row
that is no row (text behind a closing quote, a quote that never closes, bytes that are no UTF-8)
has a reason, and the next line begins a new row.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tallybook.ops.exports.ledger import SHOWN
from tallybook.ops.exports.profile import MEBIBYTE, Dialect

Cells = list[str | None]
_BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 20
_LARGEST = 16 * MEBIBYTE


@dataclass(slots=True)
class Row:
    """A row: its cells, the line and the byte where it begins, and why it cannot be read."""

    cells: Cells
    line: int = 0
    offset: int = 0
    reason: str = ""
    text: str = ""


def rows(
    path: Path,
    dialect: Dialect,
    *,
    until: int | None = None,
    doubled_ends: bool = False,
    largest: int = _LARGEST,
) -> Iterator[Row]:
    """Every line or quoted run of lines of a text as a row, blank ones with no cells.

    ``until`` ends it after so many bytes. ``doubled_ends`` takes \\r\\r\\n for one line end.
    """
    with path.open("rb") as file:
        lines = _lines(file, doubled_ends, largest)
        yield from _Reader(dialect, largest).rows(lines, until)


def _lines(file: BinaryIO, doubled_ends: bool, largest: int) -> Iterator[tuple[int, bytes]]:
    """The byte where each line begins, and the line with its end; one that is longer than
    ``largest`` comes in pieces."""
    offset, rest = 0, file.read(len(_BOM))
    if rest == _BOM:
        offset, rest = len(_BOM), b""
    while chunk := file.read(_CHUNK):
        lines = (rest + chunk).splitlines(keepends=True)
        rest = b"" if lines[-1].endswith(b"\n") else lines.pop()
        for line in _joined(lines) if doubled_ends else lines:
            yield offset, line
            offset += len(line)
        if len(rest) > largest:
            yield offset, rest
            offset, rest = offset + len(rest), b""
    for line in rest.splitlines(keepends=True):
        yield offset, line
        offset += len(line)


def _joined(lines: list[bytes]) -> Iterator[bytes]:
    """Lines of which a lone \\r before the next end belongs to that end."""
    held = b""
    for line in lines:
        held += line
        if not line.endswith(b"\r"):
            yield held
            held = b""
    if held:
        yield held


class _Reader:
    """Puts lines together to rows and takes rows apart into cells."""

    def __init__(self, dialect: Dialect, largest: int) -> None:
        self._delimiter = (dialect.delimiter or ",").encode()
        self._quote = dialect.quote.encode()
        self._blanks = b" \t".replace(self._delimiter, b"") if dialect.blanks else b""
        other = dialect.escape not in ("", dialect.quote)
        escaped = re.escape(dialect.escape.encode()) + b"." if other else self._quote * 2
        self._inside = re.compile(b"(?:" + escaped + b")|(" + re.escape(self._quote) + b")", re.S)
        self._escaped = (dialect.escape.encode(), b"") if other else (self._quote * 2, self._quote)
        self._largest = largest
        self._may_span = True
        self._line = 0
        self._given_back: list[tuple[int, bytes]] = []

    def rows(self, lines: Iterator[tuple[int, bytes]], until: int | None) -> Iterator[Row]:
        """Every row; after ``until`` bytes none begins."""
        while begun := self._next(lines):
            offset, raw = begun
            if until is not None and offset >= until:
                return
            first = self._line
            if len(raw) > self._largest:
                row = self._bad(raw, f"longer than {self._largest:,} bytes")
            elif self._quote and self._quote in raw:
                row = self._quoted(raw, lines)
            else:
                row = self._plain(raw)
            row.line, row.offset = first, offset
            yield row

    def _next(self, lines: Iterator[tuple[int, bytes]]) -> tuple[int, bytes] | None:
        found = self._given_back.pop() if self._given_back else next(lines, None)
        self._line += found is not None
        return found

    def _plain(self, raw: bytes) -> Row:
        try:
            text = raw.rstrip(b"\r\n").decode()
        except UnicodeDecodeError as error:
            return self._bad(raw, f"no UTF-8 at its byte {error.start + 1}")
        if not text:
            return Row([])
        return Row([cell or None for cell in text.split(self._delimiter.decode())])

    def _quoted(self, raw: bytes, lines: Iterator[tuple[int, bytes]]) -> Row:
        """A row with quotes; it takes further lines for as long as one is open."""
        text, taken = bytearray(raw), list[tuple[int, bytes]]()
        cells: list[bytes | None] = []
        at = 0
        while True:
            start = self._skip(text, at)
            if not text.startswith(self._quote, start):
                at = self._unquoted(text, at, cells)
            else:
                end = self._closing(text, start + len(self._quote), lines, taken)
                if end is None:
                    return self._open(raw, taken)
                cells.append(self._unescaped(bytes(text[start + len(self._quote) : end])))
                at = self._skip(text, end + len(self._quote))
            if not text.startswith(self._delimiter, at):
                break
            at += len(self._delimiter)
        if bytes(text[at:]).strip(b"\r\n"):
            return self._bad(bytes(text), "text behind a closing quote")
        return self._decoded(bytes(text), cells)

    def _skip(self, text: bytearray, at: int) -> int:
        while self._blanks and at < len(text) and text[at] in self._blanks:
            at += 1
        return at

    def _unquoted(self, text: bytearray, at: int, cells: list[bytes | None]) -> int:
        end = text.find(self._delimiter, at)
        if end < 0:
            end = len(bytes(text).rstrip(b"\r\n"))
        cells.append(bytes(text[at:end]) or None)
        return max(end, at)

    def _closing(
        self, text: bytearray, at: int, lines: Iterator[tuple[int, bytes]],
        taken: list[tuple[int, bytes]],
    ) -> int | None:  # fmt: skip
        """Where the open quote closes; None where it never does."""
        while True:
            for found in self._inside.finditer(text, at):
                at = found.end()
                if found[1]:
                    return found.start()
            if not self._may_span or len(text) > self._largest:
                return None
            more = self._next(lines)
            if more is None:
                return None
            at = max(at, len(text) - len(self._escaped[0]))
            taken.append(more)
            text += more[1]

    def _open(self, raw: bytes, taken: list[tuple[int, bytes]]) -> Row:
        """A quote that never closes spoils its own line; the lines taken in vain are given back,
        and no later row may span lines: that would read the rest again and again."""
        self._given_back += reversed(taken)
        self._line -= len(taken)
        self._may_span = False
        return self._bad(raw, "a quote that is opened here never closes")

    def _unescaped(self, cell: bytes) -> bytes:
        mark, meant = self._escaped
        if mark not in cell:
            return cell
        if meant:
            return cell.replace(mark, meant)
        return re.sub(re.escape(mark) + b"(.)", rb"\1", cell, flags=re.S)

    def _decoded(self, text: bytes, cells: list[bytes | None]) -> Row:
        try:
            return Row([None if cell is None else cell.decode() for cell in cells])
        except UnicodeDecodeError:
            return self._bad(text, "no UTF-8 in one of its cells")

    def _bad(self, text: bytes, reason: str) -> Row:
        shown = text[: 4 * SHOWN].rstrip(b"\r\n").decode("utf-8", "replace")[:SHOWN]
        return Row([], reason=reason, text=shown)
