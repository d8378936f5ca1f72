"""CSV into a target: DuckDB reads clean files on all cores; what it refuses, or would read
otherwise than the file says it, is read row by row."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from tallybook.ops.exports import rowwise, texts
from tallybook.ops.exports.dialects import Found, trails
from tallybook.ops.exports.ledger import SHOWN, BadRow
from tallybook.ops.exports.profile import MEBIBYTE, Limits
from tallybook.ops.exports.target import Given, Target
from tallybook.ops.exports.texts import Text

_OWN_QUOTE = '"'
_BUFFER = 32 * MEBIBYTE  # a thread has a few; DuckDB would make them 16 times the largest row
_FAST = """read_csv(
        $file, columns = $columns, delim = $delimiter, header = $header, auto_detect = false,
        quote = $quote, escape = $escape, nullstr = '', allow_quoted_nulls = false,
        store_rejects = true, rejects_table = $rejected, rejects_scan = $scanned,
        rejects_limit = 0, max_line_size = $largest, buffer_size = $buffer
    )"""
_REJECTED = """
    select line_byte_position - 1 as byte, error_type, error_message, csv_line
    from query_table($1)
    order by byte, column_idx
"""
_FOUND = re.compile(r"Found: ([0-9]+)")
_SURE = ("MISSING COLUMNS", "TOO MANY COLUMNS")


class NotAsItLies(Exception):
    """A text that was left where it lies is not one that DuckDB reads as it is written."""


@dataclass(slots=True)
class Taken:
    """What became of the rows of one text beside those in the target, and what is to be said."""

    bad: list[BadRow] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    said: list[str] = field(default_factory=list)


def take(
    connection: duckdb.DuckDBPyConnection, text: Text, found: Found, target: Target, limits: Limits
) -> Taken:
    """Take the rows of a text into a target."""
    at = target.need(found.columns)
    if _is_plain(text, found):
        taken = _fast(connection, text, found, target, at, limits)
        if taken is not None:
            return taken
    return _row_by_row(text, found, target, at, limits)


def _is_plain(text: Text, found: Found) -> bool:
    """Whether DuckDB would read exactly what the text says, as far as one look can tell."""
    look, dialect = text.look, found.dialect
    ends = len(look.ends) < 2 or (look.quoted and b"\r" not in look.ends)
    return (
        found.header <= 1
        and look.is_utf8
        and ends
        and not look.doubled_ends
        and not (look.blanks_at_quotes and not dialect.blanks)
        and not dialect.blanks
        and dialect.quote in ("", _OWN_QUOTE)
        and dialect.escape in ("", dialect.quote)
    )


def leave(
    connection: duckdb.DuckDBPyConnection, text: Text, found: Found, target: Target, limits: Limits
) -> bool:
    """Leave the rows of a text where they lie, if one look says that DuckDB reads it as it is
    written; ``settle`` says it once all of it was read."""
    if not _is_plain(text, found):
        return False
    target.need(found.columns)
    for word, value in _options(text, found, target, limits).items():
        connection.execute(f"set variable {target.name}_{word} = $1", [value])
    target.leave(re.sub(r"\$([a-z]+)", rf"getvariable('{target.name}_\1')", _FAST))
    return True


def settle(
    connection: duckdb.DuckDBPyConnection, text: Text, found: Found, target: Target
) -> Taken:
    """What became of the rows of a text that was left where it lies, once a question read all of
    it. Raises NotAsItLies where DuckDB met what it cannot be trusted with."""
    taken = _rejected(connection, text, found, target)
    if taken is None:
        raise NotAsItLies
    return taken


def _options(text: Text, found: Found, target: Target, limits: Limits) -> Given:
    """The parameters of ``_FAST``."""
    quote = found.dialect.quote
    return {
        "file": str(text.path), "columns": {f"r{r}": "VARCHAR" for r in range(len(found.columns))},
        "delimiter": found.delimiter, "header": found.header == 1, "quote": quote,
        "escape": quote, "largest": limits.row,
        "buffer": max(_BUFFER, 2 * limits.row), "rejected": f"{target.name}_rejected",
        "scanned": f"{target.name}_scanned",
    }  # fmt: skip


def _fast(
    connection: duckdb.DuckDBPyConnection, text: Text, found: Found, target: Target,
    at: list[int], limits: Limits,
) -> Taken | None:  # fmt: skip
    """The rows by DuckDB; None, and nothing taken, where it met what it cannot be trusted with."""
    given = _options(text, found, target, limits)
    connection.execute("begin transaction")
    try:
        before = target.rows
        target.take(_FAST, given, at)
        taken = _rejected(connection, text, found, target)
        again = bool(found.header) and target.holds(before, at, found.columns)
        if taken is None or again:
            connection.execute("rollback")
            target.rows = before
            return None
        connection.execute("commit")
    except duckdb.InvalidInputException:
        connection.execute("rollback")
        return None
    except BaseException:
        connection.execute("rollback")
        raise
    finally:
        _forget(connection, given)
    return taken


def _forget(connection: duckdb.DuckDBPyConnection, given: Given) -> None:
    for name in ("rejected", "scanned"):
        connection.execute(f"drop table if exists {given[name]}")


def _rejected(
    connection: duckdb.DuckDBPyConnection, text: Text, found: Found, target: Target
) -> Taken | None:
    first: dict[int, tuple[str, str]] = {}
    refused = connection.execute(_REJECTED, [f"{target.name}_rejected"]).fetchall()
    for byte, kind, reason, text_ in refused:
        words = (text_ or "").lstrip("\r\n")  # the end of the row before, and blank lines
        offset = byte + len(text_ or "") - len(words)
        if kind not in _SURE or words.rstrip("\r\n").endswith(found.delimiter):
            return None
        had = _FOUND.search(reason)
        why = _ragged(int(had[1]), found) if had else reason
        first.setdefault(offset, (why, words[:SHOWN]))
    lines = texts.lines_at(text.path, list(first))
    taken = Taken()
    for (offset, (why, words)), line in zip(first.items(), lines, strict=True):
        taken.bad.append(BadRow(line, why, words, text.name, offset))
    return taken


def _row_by_row(text: Text, found: Found, target: Target, at: list[int], limits: Limits) -> Taken:
    taken, trailing = Taken(), list[int]()
    width = len(found.columns)
    identical = at == list(range(len(target.columns)))
    for row in rows_of(text.path, found, limits, doubled_ends=text.look.doubled_ends):
        cells = row.cells
        if row.reason:
            taken.bad.append(BadRow(row.line, row.reason, row.text, text.name, row.offset))
        elif not cells and width > 1:
            taken.skipped["blank line"] += 1
        elif found.header and cells == found.columns:
            taken.skipped["header again"] += 1
        elif trails(cells, width):
            trailing.append(row.line)
            target.add(_placed(cells[:width], at, target, identical), row.line, row.offset)
        elif len(cells or [None]) != width:
            words = found.delimiter.join(cell or "" for cell in cells)[:SHOWN]
            reason = _ragged(len(cells), found)
            taken.bad.append(BadRow(row.line, reason, words, text.name, row.offset))
        else:
            target.add(_placed(cells or [None], at, target, identical), row.line, row.offset)
    target.flush()
    if trailing and not found.trails:
        taken.said.append(f"{text.name}: a row ends in a delimiter with nothing behind it "
                          f"{len(trailing):,} times, first at line {trailing[0]}")  # fmt: skip
    return taken


def rows_of(
    path: Path, found: Found, limits: Limits, *, doubled_ends: bool
) -> Iterator[rowwise.Row]:
    """The rows below the header of a text, blank and bad ones too."""
    rows = rowwise.rows(path, found.dialect, doubled_ends=doubled_ends, largest=limits.row)
    return (row for row in rows if row.line > found.header)


def _placed(cells: rowwise.Cells, at: list[int], target: Target, identical: bool) -> rowwise.Cells:
    if identical:
        return cells
    placed: rowwise.Cells = [None] * len(target.columns)
    for position, cell in zip(at, cells, strict=True):
        placed[position] = cell
    return placed


def _ragged(cells: int, found: Found) -> str:
    return f"{cells} cells where the header has {len(found.columns)}"


def rows_read(
    path: Path, found: Found, limits: Limits, bad: set[int | None]
) -> Iterator[rowwise.Row]:
    """The rows that DuckDB took of a text, of which it refused those at the bytes ``bad``."""
    is_narrow = len(found.columns) == 1
    for row in rows_of(path, found, limits, doubled_ends=False):
        if (row.cells or is_narrow) and row.offset not in bad:
            yield row
