"""JSON objects that have one name twice, of which most readers keep one value and say nothing."""

import json
from collections import Counter
from typing import Any

import orjson

_ODD = (b" :", b"\t:", b"\n:", b"\r:", b"\\u0022", b"\\u003")


class Twice(dict[str, Any]):
    """An object that has ``names`` more than once, each with its last value; ``pairs`` are all."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs
        counts = Counter(name for name, _ in pairs)
        self.names = [name for name, count in counts.items() if count > 1]


def fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these fields: an ``object_pairs_hook``."""
    found = dict(pairs)
    return found if len(found) == len(pairs) else Twice(pairs)


def reason(value: Any) -> str:
    """Why a value is not to be taken: an object in it is a ``Twice``; '' where none is."""
    held = [value]
    while held:
        one = held.pop()
        if isinstance(one, Twice):
            return f"a name stands twice: {one.names[0]!r}"
        held += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return ""


def read_again(text: bytes, value: Any) -> Any:
    """The value of a JSON text with each ``Twice`` in it, numbers as text; None where there plainly
    is none. ``value`` is what orjson read: it has as many names as the text where none was lost."""
    is_plain = text.count(b'":') == orjson.dumps(value).count(b'":')
    if is_plain and not any(odd in text for odd in _ODD):
        return None
    return json.loads(text, object_pairs_hook=fields, parse_int=str, parse_float=str)
