"""MongoDB extended JSON, version 1 and 2, canonical and relaxed: values in objects of one $ name.

https://www.mongodb.com/docs/manual/reference/mongodb-extended-json/
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from tallybook.ops.exports import jsons
from tallybook.ops.exports.jsons import Items, RawNumber
from tallybook.ops.exports.layout import Head, Layout

_MARK = re.compile(r'\{\s*"\$(oid|numberLong|numberInt|numberDouble|numberDecimal|date|binary|uuid'
                   r'|timestamp)"\s*:')  # fmt: skip
_NUMBERS = ("$numberLong", "$numberInt", "$numberDecimal", "$numberDouble")
_TEXTS = ("$oid", "$uuid", "$symbol", "$code")
_NOTHING = ("$undefined", "$minKey", "$maxKey")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _suits(head: Head) -> bool:
    return bool(_MARK.search(head.text)) and head.text.lstrip("\ufeff \r\n\t")[:1] in ("{", "[")


def _rows(items: Items) -> Items:
    for item in jsons.objects(items):
        if item.reason:
            yield item
            continue
        try:
            yield item.of({name: plain(value) for name, value in item.value.items()})
        except (ValueError, TypeError, OverflowError, LookupError) as error:
            yield item.bad(f"no value of extended JSON: {error}")


def plain(value: Any) -> Any:
    """The value without its wrapping: dates as RFC 3339 in UTC, binary as base64."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    tag = next((name for name in value if name.startswith("$")), None)
    return {name: plain(one) for name, one in value.items()} if tag is None else _of(tag, value)


def _of(tag: str, value: dict[str, Any]) -> Any:
    held = value[tag]
    if tag in _NUMBERS:
        return RawNumber(held) if _is_number(held) else str(held)
    if tag in _TEXTS:
        return str(held)
    if tag in _NOTHING:
        return None
    if tag == "$date":
        return _date(held)
    if tag == "$binary":
        return str(held["base64"]) if isinstance(held, dict) else str(held)
    if tag == "$timestamp":
        return _moment(int(held["t"]) * 1000) + f"/{held['i']}"
    return {name: plain(one) for name, one in value.items()}


def _is_number(text: Any) -> bool:
    return bool(re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", str(text)))


def _date(held: Any) -> str:
    if isinstance(held, dict):
        return _moment(int(held["$numberLong"]))
    return _moment(int(held)) if isinstance(held, RawNumber) else str(held)


def _moment(milliseconds: int) -> str:
    at = _EPOCH + timedelta(milliseconds=milliseconds)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


LAYOUT = Layout("mongodb", "MongoDB extended JSON, version 1 and 2", "", _suits, rows=_rows)
