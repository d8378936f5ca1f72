"""JSON values as text cells, with every number as it was written."""

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO

from tallybook.ops.exports.ledger import SHOWN

Row = dict[str, str | None]
_CHUNK = 1 << 20
_BLANK = re.compile(r"[ \t\r\n]*")


class CutShort(ValueError):
    """A JSON text that ends before its value does."""


class RawNumber(str):
    """A JSON number as the text that it was."""

    __slots__ = ()


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


def lines(path: Path, largest: int) -> Items:
    """Each line of an NDJSON file that is not blank."""
    offset, number = 0, 0
    with path.open("rb") as file:
        while line := file.readline(largest + 1):
            number += 1
            if len(line) > largest and not line.endswith(b"\n"):
                _skip_line(file)
                yield Item(number, offset, None, f"longer than {largest:,} bytes", _shown(line))
            elif line.strip(b" \t\r\n"):
                yield _line(number, offset, line)
            offset = file.tell()


def _skip_line(file: BinaryIO) -> None:
    while (more := file.readline(_CHUNK)) and not more.endswith(b"\n"):
        continue


def _line(number: int, offset: int, line: bytes) -> Item:
    bare = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
    try:
        return Item(number, offset, parse(bare.decode()))
    except (ValueError, RecursionError) as error:
        return Item(number, offset, None, f"not one JSON value: {error}", _shown(bare))


def _shown(line: bytes) -> str:
    return line[: 4 * SHOWN].decode("utf-8", "replace").rstrip("\r\n")[:SHOWN]


def document(path: Path, largest: int, each: str, said: list[str]) -> Items:
    """Each element of a JSON file that is one array, or of the list ``each`` of its only object.

    Without ``each`` the only list of objects in the object is taken, which ``said`` then tells; an
    object without one is a row. The file is read piece by piece: no more than ``largest`` letters
    are held. Raises ValueError where it is no JSON; what came before that place is of no use then.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        for item in _Document(file, largest).values():
            if isinstance(item.value, dict) and item.is_whole:
                yield from _listed(item, each, said)
            else:
                yield item


def _listed(item: Item, each: str, said: list[str]) -> Items:
    lists = [name for name, held in item.value.items() if _is_rows(held)]
    if each and each not in lists:
        raise ValueError(f"there is no list of objects {each!r} in it")
    if not each and len(lists) == 1:
        said.append(f"its rows are those of the list {lists[0]!r}")
    if each or len(lists) == 1:
        for held in item.value[each or lists[0]]:
            yield Item(None, None, held)
    else:
        yield item


def _is_rows(held: Any) -> bool:
    return isinstance(held, list) and bool(held) and all(isinstance(one, dict) for one in held)


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


class _Document:
    """A JSON text of which a part is held."""

    def __init__(self, file: TextIOWrapper, largest: int) -> None:
        self._file, self._largest = file, largest
        self._text, self._at, self._line = "", 0, 1
        self._ended = False

    def values(self) -> Items:
        if self._next() != "[":
            yield Item(self._line, None, self._value(), is_whole=True)
        else:
            self._at += 1
            yield from self._elements()
        if self._next():
            raise ValueError(f"line {self._line}: something stands behind the end of the value")

    def _elements(self) -> Items:
        if self._next() == "]":
            self._at += 1
            return
        while True:
            self._next()
            line = self._line
            yield Item(line, None, self._value())
            mark = self._next()
            self._at += 1
            if mark == "]":
                return
            if not mark:
                raise CutShort(f"it ends at line {self._line} inside its list")
            if mark != ",":
                raise ValueError(f"line {self._line}: neither , nor ] behind an element")

    def _next(self) -> str:
        """The next letter that is no white space; '' at the end."""
        while True:
            found = _BLANK.match(self._text, self._at)
            end = found.end() if found else self._at
            self._line += self._text.count("\n", self._at, end)
            self._at = end
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def _value(self) -> Any:
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except RecursionError:
                raise ValueError(f"line {self._line}: nested too deep") from None
            except ValueError as error:
                rest = self._text[self._at :]
                if not self._more():
                    raise self._refusal(error, rest) from None
                continue
            if end >= len(self._text) and self._more():
                continue
            self._line += self._text.count("\n", self._at, end)
            self._at = end
            return value

    def _refusal(self, error: ValueError, rest: str) -> ValueError:
        """Why no value stands at the beginning of ``rest``: there is none, or it is cut."""
        if not isinstance(error, json.JSONDecodeError):
            return ValueError(f"line {self._line}: {error}")
        at = error.pos - (len(error.doc) - len(rest))
        is_at_end = at >= len(rest.rstrip())
        if is_at_end or error.msg.startswith("Unterminated string"):
            return CutShort(f"it ends inside a value that begins at line {self._line}")
        line = self._line + rest.count("\n", 0, at)
        return ValueError(f"line {line}: {error.msg}")

    def _more(self) -> bool:
        """Hold more of the text, twice as much each time; False at its end."""
        if self._ended:
            return False
        held = len(self._text) - self._at
        if held > self._largest:
            raise ValueError(f"line {self._line}: a value is longer than {self._largest:,} letters")
        more = self._file.read(max(_CHUNK, held))
        self._ended = not more
        self._text, self._at = self._text[self._at :] + more, 0
        return bool(more)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


_DECODER = json.JSONDecoder(parse_int=RawNumber, parse_float=RawNumber, parse_constant=_refuse)


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
