"""Formats that are tables already: Parquet, ORC and the sheets of a workbook."""

import zlib
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta
from itertools import chain, islice
from typing import Any
from zipfile import BadZipFile

import duckdb
import pyarrow
from pyarrow import orc

from tallybook.errors import BadInput, IncompleteInput
from tallybook.ops.exports import dialects
from tallybook.ops.exports.ledger import SHOWN, BadRow
from tallybook.ops.exports.parts import Part
from tallybook.ops.exports.profile import Dialect
from tallybook.ops.exports.rowwise import Cells, Row
from tallybook.ops.exports.target import Target

_HEAD_ROWS = 200
_SPOILED = (  # what openpyxl lets through where a part of a workbook is not what it must be
    BadZipFile, zlib.error, EOFError, SyntaxError, ValueError, TypeError, AttributeError,
    LookupError, NotImplementedError, OverflowError, AssertionError,
)  # fmt: skip


def take_parquet(connection: duckdb.DuckDBPyConnection, part: Part, target: Target) -> None:
    """Take the rows of a Parquet file, each value as DuckDB writes it."""
    try:
        found = connection.sql("select * from read_parquet($1) limit 0", params=[str(part.path)])
        at = target.need(found.columns)
        cells = ", ".join(f"cast(c{r} as varchar) as r{r}" for r in range(len(at)))
        names = ", ".join(f"c{r}" for r in range(len(at)))
        source = f"(select {cells} from read_parquet($file) as given({names}))"  # noqa: S608 - positions
        target.take(source, {"file": str(part.path)}, at)
    except duckdb.Error as error:
        words = str(error).splitlines()[0]
        raise BadInput(f"{part.name} is no readable Parquet file: {words}") from error


def take_orc(part: Part, target: Target) -> None:
    """Take the rows of an ORC file, stripe by stripe."""
    try:
        file = orc.ORCFile(str(part.path))
        target.need(file.schema.names)
        for stripe in range(file.nstripes):
            batch = file.read_stripe(stripe)
            columns = [[_text(cell) for cell in column.to_pylist()] for column in batch.columns]
            for cells in zip(*columns, strict=True):
                target.add(list(cells), None, None)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        words = str(error).splitlines()[0]
        raise BadInput(f"{part.name} is no readable ORC file: {words}") from error
    target.flush()


def _text(value: Any) -> str | None:
    """A value as text in standard notation."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat(" ").replace("+00:00", "Z")
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def take_workbook(part: Part, dialect: Dialect, target: Target, bad: list[BadRow]) -> list[str]:
    """Take the rows of one sheet; those with a cell beyond the header go to ``bad``. Gives notes.

    The header is found as that of a CSV is. Raises BadInput where the sheet has no filled row."""
    notes: list[str] = []
    rows = ((line, cells) for line, cells in _sheet_rows(part, dialect.sheet, notes) if cells)
    head = list(islice(rows, _HEAD_ROWS))
    if not head:
        raise BadInput(f"{part.name} is empty: its sheet has no filled row")
    at = _header_line(head, dialect.header)
    names = _header(part, head, at, dialect)
    target.need(names)
    if at and any(line < at for line, _ in head):
        notes.append(dialects.titled(part.name, at))
    below = ((line, cells) for line, cells in chain(head, rows) if line > at)
    bad += _taken(part, below, len(names), target)
    return notes


def _taken(
    part: Part, rows: Iterable[tuple[int, Cells]], width: int, target: Target
) -> Iterator[BadRow]:
    """Take rows; gives those that are wider than their header."""
    for line, cells in rows:
        if len(cells) <= width:
            target.add(cells + [None] * (width - len(cells)), line, None)
            continue
        reason = f"{len(cells)} cells where the header has {width}"
        text = ",".join(cell or "" for cell in cells)[:SHOWN]
        yield BadRow(line, reason, text, part.name)
    target.flush()


def _header_line(head: list[tuple[int, Cells]], pinned: int | None) -> int:
    """The line of the header: the first filled one that is pinned, or that is no title; or 0."""
    if pinned == 0:
        return 0
    filled = [Row(cells, line) for line, cells in head]
    if pinned:
        return next((row.line for row in filled if row.line >= pinned), pinned)
    wide = [row for row in filled if len(row.cells) > 1]  # a sheet says not how wide a row is
    return dialects.header_line(wide if 2 * len(wide) >= len(filled) else filled)


def _header(part: Part, head: list[tuple[int, Cells]], at: int, dialect: Dialect) -> list[str]:
    if not at:
        width = max(len(cells) for _, cells in head)
        return list(dialect.columns) or [f"column {n}" for n in range(1, width + 1)]
    cells = next((cells for line, cells in head if line == at), None)
    if cells is None:
        raise BadInput(f"{part.name} has no filled row at line {at}, where its header is to be")
    names = [cell or f"column {at}" for at, cell in enumerate(cells, start=1)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadInput(f"{part.name} names a column twice: {', '.join(twice)}")
    return names


def _sheet_rows(part: Part, sheet: str, notes: list[str]) -> Iterator[tuple[int, Cells]]:
    """The rows of a sheet, each up to its last filled cell.

    Raises IncompleteInput where the workbook is spoiled."""
    try:
        yield from _rows_of_sheet(part, sheet, notes)
    except _SPOILED as error:
        words = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise IncompleteInput(f"{part.name} is a damaged or cut workbook: {words}") from error


def _rows_of_sheet(part: Part, sheet: str, notes: list[str]) -> Iterator[tuple[int, Cells]]:
    from openpyxl import load_workbook  # it takes 0.2 s, and few exports are workbooks

    book = load_workbook(part.path, read_only=True, data_only=True, keep_links=False)
    try:
        found = book[_sheet_name(part, book, sheet, notes)]
        found.reset_dimensions()
        for line, row in enumerate(found.iter_rows(values_only=True), start=1):
            cells = [_sheet_cell(cell) for cell in row]
            while cells and cells[-1] is None:
                cells.pop()
            yield line, cells
    finally:
        book.close()


def _sheet_name(part: Part, book: Any, sheet: str, notes: list[str]) -> str:
    names = [one.title for one in book.worksheets if one.sheet_state == "visible"]
    if sheet and sheet not in book.sheetnames:
        raise BadInput(f"{part.name} has no sheet {sheet!r}; it has {', '.join(book.sheetnames)}")
    if not sheet and len(names) > 1:
        notes.append(f"{part.name}: the sheet {names[0]!r} was read, not "
                     f"{', '.join(names[1:])}; write sheet in [read] of a profile")  # fmt: skip
    return sheet or names[0]


def _sheet_cell(value: Any) -> str | None:
    """The text of a cell: a number with its digits, a date as Excel means it."""
    if isinstance(value, datetime):
        midnight = value.time() == time(0)
        return value.date().isoformat() if midnight else value.isoformat(" ")
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(value).upper()
    return None if value is None else str(value)
