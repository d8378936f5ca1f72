"""JSON values as text cells, with every number as it was written."""

import codecs
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from tallybook import doubled
from tallybook.doubled import Twice
from tallybook.ops.exports.ledger import SHOWN

Row = dict[str, str | None]
_CHUNK = 1 << 20


class RawNumber(str):
    """A JSON number as the text that it was."""

    __slots__ = ()


class Decoder(json.JSONDecoder):
    """Reads values whose numbers are ``RawNumber``; ``met_twice`` once one had a ``Twice``."""

    def __init__(self) -> None:
        self.met_twice = False
        super().__init__(object_pairs_hook=self._fields, parse_int=RawNumber,
                         parse_float=RawNumber, parse_constant=_refuse)  # fmt: skip

    def _fields(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) == len(pairs):  # not doubled.fields: a call less for each object
            return fields
        self.met_twice = True
        return Twice(pairs)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


@dataclass(frozen=True, slots=True)
class Item:
    """A value of a file: the line and byte where it begins, as far as they are known.

    Where ``reason`` says why it is none, ``text`` is how it begins. ``is_whole`` says that it is
    all that the file has.
    """

    line: int | None
    offset: int | None
    value: Any = None
    reason: str = ""
    text: str = ""
    is_whole: bool = False

    def of(self, value: Any) -> "Item":
        """Another value at the same place."""
        return Item(self.line, self.offset, value)

    def bad(self, reason: str) -> "Item":
        """Why this value is no row."""
        try:
            text = compact(self.value)[:SHOWN]
        except RecursionError:
            text = "nested too deep to be shown"
        return Item(self.line, self.offset, None, reason, text)

    def once(self) -> "Item":
        """This value, or why it is no row where an object in it has one name twice."""
        reason = doubled.reason(self.value)
        return self.bad(reason) if reason else self


Items = Iterator[Item]
Rows = Callable[[Items], Items]


def parse(text: str) -> Any:
    """The value of a JSON text; its numbers are ``RawNumber``. Raises ValueError."""
    return _DECODER.decode(text)


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
        held = value.pairs if isinstance(value, Twice) else value.items()
        pairs = (f"{json.dumps(k, ensure_ascii=False)}:{compact(v)}" for k, v in held)
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(compact(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def row(value: Any) -> Row:
    """The cells of a JSON object; any other value is one cell named ``value``."""
    if isinstance(value, dict):
        return {name: cell(item) for name, item in value.items()}
    return {"value": cell(value)}


def lines(path: Path, largest: int) -> Items:
    """Each line of an NDJSON file that is not blank."""
    offset, number, decoder = 0, 0, Decoder()
    with path.open("rb") as file:
        while line := file.readline(largest + 1):
            number += 1
            if len(line) > largest and not line.endswith(b"\n"):
                _skip_line(file)
                yield Item(number, offset, None, f"longer than {largest:,} bytes", _shown(line))
            elif line.strip(b" \t\r\n"):
                yield _line(number, offset, line, decoder)
            offset = file.tell()


def _skip_line(file: BinaryIO) -> None:
    while (more := file.readline(_CHUNK)) and not more.endswith(b"\n"):
        continue


def _line(number: int, offset: int, line: bytes, decoder: Decoder) -> Item:
    bare = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
    try:
        item = Item(number, offset, decoder.decode(bare.decode()))
        return item.once() if decoder.met_twice else item
    except (ValueError, RecursionError) as error:
        return Item(number, offset, None, f"not one JSON value: {error}", _shown(bare))


def _shown(line: bytes) -> str:
    return line[: 4 * SHOWN].decode("utf-8", "replace").rstrip("\r\n")[:SHOWN]


def first(text: str) -> Any:
    """The first value in the beginning of a text, or the first element of the array that begins
    there; None where there is none."""
    begun = text.lstrip("\ufeff \t\r\n").removeprefix("[").lstrip()
    try:
        return _DECODER.raw_decode(begun)[0]
    except (ValueError, RecursionError):
        return None


def is_value(text: str) -> bool:
    """Whether a text is one JSON value."""
    try:
        parse(text)
    except (ValueError, RecursionError):
        return False
    return True


_DECODER = Decoder()


def objects(items: Iterable[Item]) -> Items:
    """The values that are objects; any other is no row."""
    for item in items:
        if item.reason or isinstance(item.value, dict):
            yield item
        else:
            yield item.bad("not a JSON object")


def cells(item: Item) -> tuple[Row, str]:
    """The cells of a value, or why it is no row."""
    if item.reason:
        return {}, item.reason
    try:
        found = row(item.value)
    except RecursionError:
        return {}, "nested too deep"
    for name, text in found.items():
        if not _is_text(name) or (text is not None and not _is_text(text)):
            return {}, f"{name!a} has half a letter (a lone surrogate)"
    return found, ""


def _is_text(cell: str) -> bool:
    """Whether a cell can be written as UTF-8: JSON can name half a letter."""
    return cell.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in cell)
