"""Formats that are tables already: Parquet, ORC and the sheets of a workbook."""

import zlib
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import Any
from zipfile import BadZipFile

import duckdb
import pyarrow
from pyarrow import orc

from tallybook.errors import BadInput, IncompleteInput
from tallybook.ops.exports.parts import Part
from tallybook.ops.exports.rowwise import Cells
from tallybook.ops.exports.target import Target

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
    except (pyarrow.ArrowException, OSError) as error:
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


def take_workbook(part: Part, sheet: str, header: int | None, target: Target) -> list[str]:
    """Take the rows of one sheet, of which the first that is filled is the header; gives notes.

    Raises BadInput where a workbook of several sheets is not told which."""
    notes: list[str] = []
    rows = _sheet_rows(part, sheet, notes)
    first = next(
        ((line, cells) for line, cells in rows if any(cells) and line >= (header or 1)), None
    )
    if first is None:
        raise BadInput(f"{part.name} is empty: its sheet has no filled row")
    names = _header(part, first[1])
    target.need(names)
    blank = 0
    for line, cells in rows:
        if any(cell is not None for cell in cells[: len(names)]):
            target.add((cells + [None] * len(names))[: len(names)], line, None)
        else:
            blank += 1
    target.flush()
    return notes


def _header(part: Part, cells: Cells) -> list[str]:
    while cells and cells[-1] is None:
        cells = cells[:-1]
    names = [cell or f"column {at}" for at, cell in enumerate(cells, start=1)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadInput(f"{part.name} names a column twice: {', '.join(twice)}")
    return names


def _sheet_rows(part: Part, sheet: str, notes: list[str]) -> Iterator[tuple[int, Cells]]:
    """The rows of a sheet. Raises IncompleteInput where the workbook is spoiled."""
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
            yield line, [_sheet_cell(cell) for cell in row]
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
