"""A JSON file that is one array, or one object with a list of rows, read piece by piece."""

import json
import re
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from tallybook.doubled import Twice
from tallybook.ops.exports.jsons import Decoder, Item, Items

_CHUNK = 1 << 20
_BLANK = re.compile(r"[ \t\r\n]*")


class CutShort(ValueError):
    """A JSON text that ends before its value does."""


def document(path: Path, largest: int, each: str, said: list[str]) -> Items:
    """Each element of a JSON file that is one array, or of the list ``each`` of its only object.

    Without ``each`` the only list of objects in the object is taken, which ``said`` then tells; an
    object without one is a row. The file is read piece by piece: no more than ``largest`` letters
    are held. Raises ValueError where it is no JSON; what came before that place is of no use then.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        read = _Document(file, largest)
        for item in read.values():
            if isinstance(item.value, dict) and item.is_whole:
                yield from (one.once() for one in _listed(item, each, said))
            else:
                yield item.once() if read.met_twice else item


def _listed(item: Item, each: str, said: list[str]) -> Items:
    lists = [name for name, held in item.value.items() if _is_rows(held)]
    if each and each not in lists:
        raise ValueError(f"there is no list of objects {each!r} in it")
    if not each and len(lists) == 1:
        said.append(f"its rows are those of the list {lists[0]!r}")
    if each or len(lists) == 1:
        chosen = each or lists[0]
        if isinstance(item.value, Twice) and chosen in item.value.names:
            raise ValueError(f"the list {chosen!r} stands twice in it")
        for held in item.value[chosen]:
            yield Item(None, None, held)
    else:
        yield item


def _is_rows(held: Any) -> bool:
    return isinstance(held, list) and bool(held) and all(isinstance(one, dict) for one in held)


class _Document:
    """A JSON text of which a part is held."""

    def __init__(self, file: TextIOWrapper, largest: int) -> None:
        self._file, self._largest = file, largest
        self._text, self._at, self._line = "", 0, 1
        self._ended = False
        self._decoder = Decoder()

    @property
    def met_twice(self) -> bool:
        """Whether an object so far has one name twice."""
        return self._decoder.met_twice

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
                value, end = self._decoder.raw_decode(self._text, self._at)
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
