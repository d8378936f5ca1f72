"""The reader of segments in Python: what is whole in them, and where and why the rest is not.

The text passes in pieces of whole lines. A piece in which each line has the head that the log
writes, at its beginning and nowhere else, is let through as it is: DuckDB reads it strictly. The
lines of any other piece are parsed and checked one by one. A bad line takes nothing with it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from tallybook import packed
from tallybook.errors import BadInput
from tallybook.layout import Layout, segment_name
from tallybook.ops.refusals import refusal

TEXT_SHOWN = 200
LONGEST_LINE = 32 * 1024 * 1024
_CHUNK = 1 << 20
_HEAD = b'{"v":1,"seq":'
_NEXT_HEAD = b"}\n" + _HEAD


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is in no table: where it stands, why, and how it begins.

    ``file`` is the name of the segment, ``byte_offset`` one in its text, compressed or not.
    """

    file: str
    line: int
    byte_offset: int
    reason: str
    text: str


@dataclass(slots=True)
class Verdict:
    """What a segment holds. ``lines = rows + len(bad) + blank``; a torn tail is no line yet.

    The place where an archive is damaged counts as one bad line. ``text_bytes`` were read; no
    whole line is longer than ``longest``.
    """

    segment: str
    lines: int = 0
    rows: int = 0
    blank: int = 0
    longest: int = 0
    text_bytes: int = 0
    bad: list[BadLine] = field(default_factory=list)
    torn_tail: BadLine | None = None

    @property
    def is_clean(self) -> bool:
        """Whether the segment can be read as it lies there."""
        return not self.bad and not self.torn_tail


@dataclass(frozen=True, slots=True)
class _Piece:
    """Whole lines, or the begin of one that is too long, with ``skipped`` bytes behind it."""

    data: bytes
    skipped: int
    ends: bool


def judge(path: Path, clean: BinaryIO | None = None, *, every_line: bool = False) -> Verdict:
    """Account for every line of ``path``, and write its whole lines to ``clean``.

    With ``every_line`` no piece is let through unparsed.
    """
    verdict = Verdict(segment_name(path))
    try:
        with packed.reading(path) as file:
            for piece in _pieces(file):
                _judge_piece(verdict, piece, clean, every_line)
    except packed.Unreadable as error:
        _set_apart(verdict, b"", str(error))
    return verdict


def _pieces(file: BinaryIO) -> Iterator[_Piece]:
    """The text in pieces that end with a line, but for the last, where that has no end."""
    # read1 gives what comes right before a damaged place, too
    while chunk := file.read1(_CHUNK):  # type: ignore[attr-defined] # both kinds of files have it
        end = chunk.rfind(b"\n") + 1
        if end:
            yield _Piece(chunk[:end], 0, ends=True)
        if end < len(chunk):
            yield _rest_of_line(file, chunk[end:])


def _rest_of_line(file: BinaryIO, begun: bytes) -> _Piece:
    """The line that begins so; what it has beyond the limit is counted and not kept."""
    line = begun + file.readline(LONGEST_LINE)
    more, size = line, len(line)
    while more and not more.endswith(b"\n"):
        more = file.readline(_CHUNK)
        size += len(more)
    kept = line if size == len(line) else line[:_CHUNK]
    return _Piece(kept, size - len(kept), ends=more.endswith(b"\n"))


def _judge_piece(verdict: Verdict, piece: _Piece, clean: BinaryIO | None, every_line: bool) -> None:
    if not piece.ends:
        _judge_tail(verdict, piece)
    elif piece.skipped:
        size = len(piece.data) + piece.skipped
        _set_apart(verdict, piece.data, f"a line of {size:,} bytes; no event is so long", size)
    elif not every_line and (lines := _looking_whole(piece.data)):
        _let_through(verdict, piece.data, lines, clean)
    else:
        for line in piece.data.split(b"\n")[:-1]:
            _judge_line(verdict, line + b"\n", clean)


def _looking_whole(data: bytes) -> int:
    """How many lines there are, where each begins with the head of an event and has no other.

    A last line without a head is not seen; the strict read that follows finds it.
    """
    lines = data.count(_NEXT_HEAD) + 1
    whole = data.startswith(_HEAD) and data.endswith(b"}\n") and data.count(_HEAD) == lines
    return lines if whole else 0


def _let_through(verdict: Verdict, data: bytes, lines: int, clean: BinaryIO | None) -> None:
    verdict.lines += lines
    verdict.rows += lines
    verdict.text_bytes += len(data)
    verdict.longest = max(verdict.longest, len(data))
    if clean:
        clean.write(data)


def _judge_tail(verdict: Verdict, piece: _Piece) -> None:
    """What stands behind the last end of a line: torn, unless it holds ends of another kind."""
    size = len(piece.data) + piece.skipped
    if b"\r" in piece.data:
        _set_apart(verdict, piece.data, "its lines end in CR alone, not in LF", size)
    else:
        reason = "torn tail: no end of line"
        verdict.torn_tail = _bad(verdict, verdict.lines + 1, piece.data, reason)


def _judge_line(verdict: Verdict, line: bytes, clean: BinaryIO | None) -> None:
    if line.isspace():
        verdict.lines += 1
        verdict.blank += 1
        verdict.text_bytes += len(line)
    elif reason := refusal(line):
        _set_apart(verdict, line, reason, len(line))
    else:
        _let_through(verdict, line, 1, clean)


def _set_apart(verdict: Verdict, line: bytes, reason: str, size: int = 0) -> None:
    verdict.lines += 1
    verdict.bad.append(_bad(verdict, verdict.lines, line, reason))
    verdict.text_bytes += size


def _bad(verdict: Verdict, number: int, line: bytes, reason: str) -> BadLine:
    shown = line[: TEXT_SHOWN * 4].decode("utf-8", "replace").rstrip("\r\n")[:TEXT_SHOWN]
    return BadLine(verdict.segment, number, verdict.text_bytes, reason, shown)


def require_own_log(place: Layout, bad: Sequence[BadLine]) -> None:
    """Raise BadInput where a log has lines, and not one of them is an event."""
    if not bad:
        return
    first = bad[0]
    said = f"{place.log / first.file} line {first.line}: {first.reason}"
    if all(line.reason.startswith("v is ") for line in bad):
        raise BadInput(f"{said}: the book is of a newer version; update tallybook")
    if not any(line.text.startswith('{"v":') for line in bad):
        raise BadInput(
            f"{said}; no line of this log is an event of tallybook, so it is the log of another "
            "program; name a book with --book DIR or TALLYBOOK_BOOK"
        )
