"""JSON values as text cells, with every number as it was written."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tallybook.ops.exports.ledger import BadRow

Row = dict[str, str | None]


class RawNumber(str):
    """A JSON number as the text that it was."""

    __slots__ = ()


def parse(text: str) -> Any:
    """The value of a JSON text; its numbers are ``RawNumber``. Raises ValueError."""
    return json.loads(text, parse_int=RawNumber, parse_float=RawNumber, parse_constant=_refuse)


def cell(value: Any) -> str | None:
    """The text of a JSON value: null is None, a string is itself, all else is JSON text."""
    if value is None:
        return None
    if isinstance(value, str):
        return str(value)
    return compact(value)


def compact(value: Any) -> str:
    """JSON text without white space, numbers as they were written."""
    if isinstance(value, RawNumber):
        return str(value)
    if isinstance(value, dict):
        pairs = (f"{json.dumps(k, ensure_ascii=False)}:{compact(v)}" for k, v in value.items())
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(compact(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def row(value: Any) -> Row:
    """The cells of a JSON object; any other value is one cell named ``value``."""
    if isinstance(value, dict):
        return {name: cell(item) for name, item in value.items()}
    return {"value": cell(value)}


def read_lines(path: Path) -> Iterator[tuple[int, Row | BadRow]]:
    """Each line of an NDJSON file: its number and its cells, or why it cannot be read."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip():
                yield number, _read_line(number, line)


def _read_line(number: int, line: bytes) -> Row | BadRow:
    try:
        value = parse(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        return BadRow(number, f"not one JSON value: {error}", line[:200].decode("utf-8", "replace"))
    if not isinstance(value, dict):
        return BadRow(number, "not a JSON object", line[:200].decode("utf-8", "replace"))
    return row(value)


def read_array(path: Path) -> Iterable[tuple[None, Row | BadRow]]:
    """Each element of a JSON file that is one array of objects. Raises ValueError."""
    values = parse(path.read_text("utf-8-sig"))
    if not isinstance(values, list):
        raise ValueError("the file is not a JSON array")
    for value in values:
        good = isinstance(value, dict)
        yield None, row(value) if good else BadRow(None, "not a JSON object", compact(value)[:200])


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")
