"""The lines of PostgreSQL's COPY in text format.

Cells stand between tabs, \\N is null, and a \\ stands before a letter that means another one.
"""

import re
from collections.abc import Iterator

from tallybook.errors import BadInput, IncompleteInput
from tallybook.ops.exports.ledger import SHOWN, BadRow
from tallybook.ops.exports.target import Target
from tallybook.ops.exports.texts import Text

_BEGINS = re.compile(rb"(?i)^COPY ([^;]+?) FROM stdin(?: [^;]*)?;\s*$")
_COLUMNS = re.compile(r"^(.*?)\s*\((.*)\)$", re.S)
_ESCAPED = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.S)
_MEANT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def take(text: Text, columns: tuple[str, ...], target: Target) -> list[BadRow]:
    """Take the rows of one table; gives those that are none.

    Raises BadInput where the text has several tables or no column names, and IncompleteInput where
    it ends before the end of the table.
    """
    bad: list[BadRow] = []
    width = len(target.need(columns)) if columns else 0
    for line, offset, raw in _rows(text, target, bool(columns)):
        width = width or _numbered(target, raw)
        try:
            cells = [_cell(cell) for cell in raw.decode().split("\t")]
        except UnicodeDecodeError as error:
            bad.append(_bad(text, line, offset, raw, f"no UTF-8 at its byte {error.start + 1}"))
            continue
        if len(cells) != len(target.columns):
            reason = f"{len(cells)} cells where the table has {len(target.columns)} columns"
            bad.append(_bad(text, line, offset, raw, reason))
        else:
            target.add(cells, line, offset)
    target.flush()
    return bad


def _rows(text: Text, target: Target, is_named: bool) -> Iterator[tuple[int, int, bytes]]:
    """The lines of the table: all of a bare file, those between COPY and \\. of a dump."""
    tables: list[str] = []
    is_dump, inside, offset = False, True, 0
    with text.path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            begun = _BEGINS.match(raw)
            if begun:
                is_dump = inside = True
                tables.append(begun[1].decode("utf-8", "replace"))
                _name(text, target, tables, is_named)
            elif raw.rstrip(b"\r\n") == b"\\.":
                inside = False
            elif inside and (is_dump or not _is_dump(raw, number)):
                yield number, offset, raw.rstrip(b"\n").removesuffix(b"\r")
            elif number == 1:
                inside = False
            offset += len(raw)
    if is_dump and inside:
        raise IncompleteInput(f"{text.name} is cut: the table {tables[-1]} does not end with \\.")


def _is_dump(raw: bytes, number: int) -> bool:
    """Whether a first line is none of a table: pg_dump begins with a remark."""
    return number == 1 and raw.startswith((b"--", b"\n", b"SET "))


def _name(text: Text, target: Target, tables: list[str], is_named: bool) -> None:
    if len(tables) > 1:
        raise BadInput(f"{text.name} has several tables ({', '.join(tables)}); dump one of them")
    listed = _COLUMNS.match(tables[0])
    if listed and not is_named:
        target.need([name.strip().strip('"') for name in listed[2].split(",")])


def _numbered(target: Target, raw: bytes) -> int:
    if not target.columns:
        target.need([f"column {at}" for at in range(1, raw.count(b"\t") + 2)])
    return len(target.columns)


def _cell(text: str) -> str | None:
    if text == "\\N":
        return None
    return _ESCAPED.sub(_meant, text) if "\\" in text else text


def _meant(found: re.Match[str]) -> str:
    mark = found[1]
    if mark[0] == "x" and len(mark) > 1:
        return chr(int(mark[1:], 16))
    return chr(int(mark, 8)) if mark.isdigit() and mark < "8" else _MEANT.get(mark, mark)


def _bad(text: Text, line: int, offset: int, raw: bytes, reason: str) -> BadRow:
    return BadRow(line, reason, raw.decode("utf-8", "replace")[:SHOWN], text.name, offset)
