"""The reader of segments in Python: what is whole in them, and where and why the rest is not.

The text passes in pieces of whole lines. A piece in which each line has the head that the log
writes, at its beginning and nowhere else, is let through as it is: DuckDB reads it strictly. The
lines of any other piece are parsed and checked one by one. A bad line takes nothing with it.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from tallybook import packed
from tallybook.layout import segment_name
from tallybook.ops.fields import FIELDS, REQUIRED

TEXT_SHOWN = 200
LONGEST_LINE = 32 * 1024 * 1024
_CHUNK = 1 << 20
_HEAD = b'{"v":1,"seq":'
_NEXT_HEAD = b"}\n" + _HEAD
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z")


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


class _Refused(ValueError):
    """Why a line cannot be read, in a few words."""


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
    while chunk := file.read1(_CHUNK):  # type: ignore[attr-defined]
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


def refusal(line: bytes) -> str | None:
    """Why ``line`` is no readable event; None where it is one."""
    try:
        _checked(line)
    except _Refused as error:
        return str(error)
    return None


def event(line: bytes) -> dict[str, Any] | None:
    """The fields of ``line``; None where it is no readable event."""
    try:
        return _checked(line)
    except _Refused:
        return None


def _checked(line: bytes) -> dict[str, Any]:
    fields = _parsed_fast(line) or _parse(line)
    _check(fields)
    return fields


def _parsed_fast(line: bytes) -> dict[str, Any] | None:
    """The fields of a line in which plainly none stands twice; None where that takes a look."""
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(fields, dict):
        return None
    names = len(fields) + sum(len(value) for value in fields.values() if isinstance(value, dict))
    return fields if line.count(b'":') == names else None


def _parse(line: bytes) -> dict[str, Any]:
    if b"\x00" in line:
        raise _Refused("NUL bytes")
    if line.startswith(b"\xef\xbb\xbf"):
        raise _Refused("it begins with a byte order mark")
    try:
        text = line.decode("utf-8")
        parsed = json.loads(text, object_pairs_hook=_Fields)
    except UnicodeDecodeError:
        raise _Refused("not UTF-8") from None
    except RecursionError:
        raise _Refused("nested too deep") from None
    except json.JSONDecodeError as error:
        raise _Refused(_syntax(error)) from None
    if not isinstance(parsed, _Fields):
        raise _Refused("not a JSON object")
    if parsed.doubled & FIELDS.keys():
        raise _Refused("a field stands twice")
    if "\\ud" in text.lower():
        _no_lone_surrogate(parsed)
    return parsed


class _Fields(dict[str, Any]):
    """The fields of an object, and the names that stand twice in it."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        counts = Counter(name for name, _ in pairs)
        self.doubled = {name for name, count in counts.items() if count > 1}


def _syntax(error: json.JSONDecodeError) -> str:
    if error.msg == "Extra data":
        return f"more than one JSON value on the line, from column {error.colno}"
    return f"not whole JSON: {error.msg[0].lower()}{error.msg[1:]}, column {error.colno}"


def _no_lone_surrogate(parsed: dict[str, Any]) -> None:
    try:
        json.dumps(parsed, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise _Refused("a lone surrogate in a text") from None


def _check(fields: dict[str, Any]) -> None:
    for name in REQUIRED:
        if fields.get(name) is None:
            raise _Refused(f"no field {name}")
    for name, value in fields.items():
        kind = FIELDS.get(name)
        if value is not None and kind in _FITS and not _FITS[kind](value):
            raise _Refused(f"{name} is no {_NOUNS[kind]}")
    if fields["v"] != 1:
        raise _Refused(f"v is {fields['v']}; this version reads v 1")
    if fields["seq"] < 0:
        raise _Refused("seq is negative")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _is_moment(value: Any) -> bool:
    if not isinstance(value, str) or not _MOMENT.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


_FITS: dict[str, Callable[[Any], bool]] = {
    "whole": _is_whole,
    "number": _is_number,
    "moment": _is_moment,
    "flag": lambda value: isinstance(value, bool),
}
_NOUNS = {
    "whole": "whole number",
    "number": "number",
    "moment": "UTC time",
    "flag": "true or false",
}
