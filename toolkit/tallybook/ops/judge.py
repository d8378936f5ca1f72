"""The slow and exact reader of segments that DuckDB found something wrong in.

It reads line by line, keeps what is whole and says of each other line where it stands and why it
cannot be read. A bad line takes nothing with it.
"""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from tallybook import packed
from tallybook.layout import segment_name
from tallybook.ops.fields import FIELDS, REQUIRED

TEXT_SHOWN = 200


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

    The place where an archive is damaged counts as one bad line. ``text_bytes`` were read.
    """

    segment: str
    lines: int = 0
    rows: int = 0
    blank: int = 0
    longest: int = 0
    text_bytes: int = 0
    bad: list[BadLine] = field(default_factory=list)
    torn_tail: BadLine | None = None


class _Refused(ValueError):
    """Why a line cannot be read, in a few words."""


def judge(path: Path, clean: BinaryIO) -> Verdict:
    """Write the whole lines of ``path`` to ``clean`` and account for all others."""
    verdict = Verdict(segment_name(path))
    try:
        _judge(path, clean, verdict)
    except packed.Unreadable as error:
        verdict.lines += 1
        verdict.bad.append(_bad(path, verdict.lines, verdict.text_bytes, b"", str(error)))
    return verdict


def _judge(path: Path, clean: BinaryIO, verdict: Verdict) -> None:
    for number, offset, line in _lines(path):
        if not line.endswith(b"\n"):
            verdict.torn_tail = _bad(path, number, offset, line, "torn tail: no end of line")
            break
        verdict.lines += 1
        verdict.text_bytes = offset + len(line)
        if not line.strip():
            verdict.blank += 1
        elif reason := refusal(line):
            verdict.bad.append(_bad(path, number, offset, line, reason))
        else:
            clean.write(line)
            verdict.rows += 1
            verdict.longest = max(verdict.longest, len(line))


def refusal(line: bytes) -> str | None:
    """Why ``line`` is no readable event; None where it is one."""
    try:
        _check(_parse(line))
    except _Refused as error:
        return str(error)
    return None


def _lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    offset = 0
    with packed.reading(path) as file:
        for number, line in enumerate(file, start=1):
            yield number, offset, line
            offset += len(line)


def _bad(path: Path, number: int, offset: int, line: bytes, reason: str) -> BadLine:
    shown = line[: TEXT_SHOWN * 4].decode("utf-8", "replace").rstrip("\r\n")[:TEXT_SHOWN]
    return BadLine(segment_name(path), number, offset, reason, shown)


def _parse(line: bytes) -> dict[str, Any]:
    if b"\x00" in line:
        raise _Refused("NUL bytes")
    try:
        text = line.decode("utf-8")
        parsed = json.loads(text, object_pairs_hook=_unique)
    except UnicodeDecodeError:
        raise _Refused("not UTF-8") from None
    except RecursionError:
        raise _Refused("nested too deep") from None
    except json.JSONDecodeError as error:
        raise _Refused(_syntax(error)) from None
    if not isinstance(parsed, dict):
        raise _Refused("not a JSON object")
    if "\\ud" in text.lower():
        _no_lone_surrogate(parsed)
    return parsed


def _syntax(error: json.JSONDecodeError) -> str:
    if error.msg == "Extra data":
        return f"more than one JSON value on the line, from column {error.colno}"
    return f"not whole JSON: {error.msg[0].lower()}{error.msg[1:]}, column {error.colno}"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Refused("a field stands twice")
    return found


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
    return _is_whole(value) or (isinstance(value, float) and math.isfinite(value))


def _is_moment(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    for form in ("%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%dT%H:%M:%SZ"):
        try:
            datetime.strptime(value, form)
        except ValueError:
            continue
        return True
    return False


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
