"""Whether one line is an event that can be read, and why it is not."""

import json
import math
import re
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any

import orjson

from tallybook.ops.fields import FIELDS, REQUIRED

_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z")


class _Refused(ValueError):
    """Why a line cannot be read, in a few words."""


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
