"""What may stand in a job, decided once at enqueue and the same everywhere; pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any
from unicodedata import category

import orjson

from tallybook.errors import BadInput

MAX_PAYLOAD_BYTES = 1024 * 1024
MAX_KEY_BYTES = 1024
MAX_ERROR_CHARACTERS = 20_000
LARGEST_INTEGER = 2**53
MAX_DEPTH = 100
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_TOPIC = re.compile(r"[\w.:/-]{1,200}")


def checked(payload: Any) -> bytes:
    """The JSON of a payload in UTF-8. Raises BadInput that says which part cannot be kept, and why.

    Kept is what every backend, every reader and every language gives back unchanged: JSON of at
    most 1 MiB, nested at most 100 deep, with no NUL, no lone surrogate, no NaN and no integer over
    2^53.
    """
    text = _quickly(payload)
    may_be_deep = text is None or text.count(b"[") + text.count(b"{") > MAX_DEPTH
    if may_be_deep and _is_deeper(payload, MAX_DEPTH):
        raise BadInput(f"payload: nested deeper than {MAX_DEPTH} levels")
    if text is None:
        problem = _problem(payload, "payload")
        if problem:
            raise BadInput(problem)
        text = orjson.dumps(payload)
    if len(text) > MAX_PAYLOAD_BYTES:
        raise BadInput(f"payload: {len(text)} bytes of JSON; at most {MAX_PAYLOAD_BYTES} are taken")
    return text


def _quickly(payload: Any) -> bytes | None:
    """The JSON of a payload that is plainly fit; None where a closer look is due.

    What comes back as it was is JSON: orjson would take a date or a NaN, but not give it back. It
    raises TypeError for what it does not take, a lone surrogate, or an integer over 2^53 - 1.
    """
    try:
        text = orjson.dumps(payload, option=orjson.OPT_STRICT_INTEGER)
        is_fit = b"\\u0000" not in text and orjson.loads(text) == payload
    except (TypeError, ValueError, RecursionError):
        return None
    return text if is_fit else None


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects are nested in ``value`` to more than ``levels``."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return False
    return levels == 0 or any(_is_deeper(item, levels - 1) for item in value)


def _problem(value: Any, place: str) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return _text_problem(value, place)
    if isinstance(value, int):
        return f"{place}: {value} is over 2^53" if abs(value) > LARGEST_INTEGER else None
    if isinstance(value, float):
        return None if value - value == 0 else f"{place}: {value} is no JSON number"
    if isinstance(value, dict):
        return _object_problem(value, place)
    if isinstance(value, list | tuple):
        found = (_problem(item, f"{place}[{n}]") for n, item in enumerate(value))
        return next(filter(None, found), None)
    return f"{place}: {type(value).__name__} is no JSON value"


def _object_problem(value: dict[Any, Any], place: str) -> str | None:
    for name, item in value.items():
        if not isinstance(name, str):
            return f"{place}: the name {name!r} is not text"
        problem = _text_problem(name, f"{place}: a name") or _problem(item, f"{place}.{name}")
        if problem:
            return problem
    return None


def _text_problem(text: str, place: str) -> str | None:
    if "\0" in text:
        return f"{place}: holds a NUL character"
    if _LONE_SURROGATE.search(text):
        return f"{place}: holds a lone surrogate, which is no Unicode text"
    return None


def redacted(value: Any, names: Collection[str], place: str) -> tuple[Any, list[str]]:
    """``value`` with null under each of ``names`` at any depth, and the places of those."""
    if isinstance(value, dict):
        parts: Iterable[tuple[Any, Any, str]] = (
            (name, item, f"{place}.{name}") for name, item in value.items()
        )
    elif isinstance(value, list | tuple):
        parts = ((number, item, f"{place}[{number}]") for number, item in enumerate(value))
    else:
        return value, []
    kept, places = {}, []
    for name, item, path in parts:
        found = (None, [path]) if name in names else redacted(item, names, path)
        kept[name] = found[0]
        places += found[1]
    return (kept if isinstance(value, dict) else list(kept.values())), places


@lru_cache(maxsize=1024)
def checked_topic(topic: str) -> str:
    """A topic of 1 to 200 letters, digits and ``_ . : / -``. Raises BadInput."""
    if not _TOPIC.fullmatch(topic):
        raise BadInput(f"topic {topic[:80]!r}: use 1 to 200 letters, digits and _ . : / -")
    return topic


def checked_text(name: str, text: str | None) -> str | None:
    """A key or id of at most 1 KiB that is clean text; None stays None. Raises BadInput."""
    if text is None:
        return None
    problem = _text_problem(text, name)
    if problem:
        raise BadInput(problem)
    size = len(text.encode())
    if not 0 < size <= MAX_KEY_BYTES:
        raise BadInput(f"{name}: {size} bytes; use 1 to {MAX_KEY_BYTES}")
    return text


def visible(text: str) -> str:
    """Text on one line with nothing that could steer a terminal or turn its words around: control
    characters, line ends and bidirectional marks stand as escapes."""
    return "".join(_escape(c) if _is_hidden(c) else c for c in text)


def _is_hidden(character: str) -> bool:
    return category(character) in ("Cc", "Zl", "Zp", "Cs") or character in _BIDI


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def clean(text: str) -> str:
    """Any text made fit for an event: recording an error never fails because of its words."""
    shown = _LONE_SURROGATE.sub("\ufffd", text).replace("\0", "\ufffd")
    if len(shown) > MAX_ERROR_CHARACTERS:
        return f"{shown[:MAX_ERROR_CHARACTERS]} … ({len(shown)} characters)"
    return shown
