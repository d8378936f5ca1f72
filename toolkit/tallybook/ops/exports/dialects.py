"""How a CSV is written, found out from its beginning where the profile does not pin it.

The ending of the name counts first: a ``.csv`` has commas and a ``.tsv`` tabs, unless that makes
one cell of every line and another delimiter makes the same number of them in most.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tallybook.errors import BadInput
from tallybook.ops.exports import rowwise
from tallybook.ops.exports.profile import Dialect

_HEAD_BYTES = 1 << 18
_ROWS = 200
_DELIMITERS = (",", "\t", ";", "|", "\x01", "^", "~", ":")
_MOST = 0.7
TRAILS = "rows end in a delimiter with nothing behind it"
_HEADER_TRAILS = "the header ends in a delimiter, and no row has a cell after it"
_CHANGED = "it is for another export, or this one has changed"


@dataclass(frozen=True, slots=True)
class Found:
    """A dialect with nothing left open, the names of the columns and what was guessed of it.

    ``trails``: that its first rows end in a delimiter with nothing behind it was said.
    """

    dialect: Dialect
    columns: list[str]
    said: list[str]
    trails: bool = False

    @property
    def delimiter(self) -> str:
        """What stands between two cells."""
        return self.dialect.delimiter or ","

    @property
    def header(self) -> int:
        """The line of the header; 0 where there is none."""
        return self.dialect.header or 0


def find(name: str, path: Path, pinned: Dialect) -> Found:
    """The dialect of a text. Raises BadInput where it has no header that can be read."""
    dialect, said = pinned, []
    if dialect.delimiter is None:
        dialect = _with_delimiter(name, path, dialect)
        if dialect.delimiter != _by_name(name):
            said.append(f"{name}: read with {dialect.delimiter!r} between the cells")
    rows = _head(path, dialect)
    if _blanks_before_quotes(rows) and not dialect.blanks:
        dialect = replace(dialect, blanks=True)
        said.append(f"{name}: blanks between a delimiter and a quote do not count")
        rows = _head(path, dialect)
    if dialect.header is None:
        dialect = replace(dialect, header=header_line(rows))
    names = _names(name, rows, dialect, said)
    trailing = [row.line for row in rows if row.line >= (dialect.header or 0)
                and trails(row.cells, len(names))]  # fmt: skip
    if trailing:
        is_header = trailing[0] == dialect.header
        said.append(f"{name}: {_HEADER_TRAILS if is_header else TRAILS}")
    return Found(dialect, names, said, bool(trailing))


def trails(cells: rowwise.Cells, width: int) -> bool:
    """Whether a row of ``width`` cells has more delimiters, with nothing behind them."""
    return len(cells) > width and all(cell is None for cell in cells[width:])


def _by_name(name: str) -> str:
    return "\t" if name.lower().endswith((".tsv", ".tab")) else ","


def _head(path: Path, dialect: Dialect) -> list[rowwise.Row]:
    """The first rows, as text without value: bad ones and blank ones too."""
    rows: list[rowwise.Row] = []
    for row in rowwise.rows(path, dialect, until=_HEAD_BYTES):
        rows.append(row)
        if len(rows) == _ROWS:
            break
    return rows


def _with_delimiter(name: str, path: Path, dialect: Dialect) -> Dialect:
    """The usual delimiter, unless the first line has another number of cells than most and another
    delimiter gives one number to it and to most: ``;`` where commas stand in numbers."""
    usual = _by_name(name)
    best, most = usual, 0.0
    for mark in (usual, *(mark for mark in _DELIMITERS if mark != usual)):
        rows = _head(path, replace(dialect, delimiter=mark))
        width, share = _agreed(rows)
        if width < 2 or len(next(row.cells for row in rows if row.cells)) != width:
            continue
        if rows[0].reason:
            continue  # a header that is no row here is one by another delimiter
        if mark == usual:
            return replace(dialect, delimiter=usual)
        if share >= _MOST and share > most:
            best, most = mark, share
    return replace(dialect, delimiter=best)


def _agreed(rows: Sequence[rowwise.Row]) -> tuple[int, float]:
    """The usual number of cells, and the share of rows that have it."""
    widths = Counter(len(row.cells) for row in rows if row.cells)
    if not widths:
        return 0, 0.0
    width, count = widths.most_common(1)[0]
    return width, count / widths.total()


def _blanks_before_quotes(rows: Sequence[rowwise.Row]) -> bool:
    """Whether every cell that begins with blanks and then a quote seems to mean that quote."""
    cells = [cell for row in rows for cell in row.cells if cell]
    padded = [cell for cell in cells if cell[0] in " \t" and cell.lstrip(" \t").startswith('"')]
    return bool(padded) and len(padded) >= len(rows) / 2


def header_line(rows: Sequence[rowwise.Row]) -> int:
    """The first line that is as wide as most rows; what stands above it are titles."""
    filled = [row for row in rows if any(row.cells)]
    if not filled:
        return rows[0].line if rows else 1
    width = _agreed([row for row in filled if not row.reason])[0]
    for row in filled:
        named = sum(cell not in (None, "") for cell in row.cells)
        if width < 2 or 2 * named > width or len(row.cells) > width:
            return row.line
    return filled[0].line


def titled(name: str, line: int) -> str:
    """What is said of a header that does not stand first."""
    return f"{name}: the header is line {line}; what stands above it is no row"


def _names(name: str, rows: Sequence[rowwise.Row], dialect: Dialect, said: list[str]) -> list[str]:
    if not dialect.header:
        width = len(dialect.columns) or _agreed(rows)[0]
        return list(dialect.columns) or [f"column {at}" for at in range(1, width + 1)]
    header = next((row for row in rows if row.line == dialect.header), None)
    if header is None or header.reason or not header.cells:
        reason = header.reason if header and header.reason else "there is no such line"
        raise BadInput(f"{name} has no readable CSV header at line {dialect.header}: {reason}")
    above = sum(1 for row in rows if row.line < header.line and any(row.cells))
    if above:
        said.append(titled(name, header.line))
    named = _named(name, header, rows, said)
    _require_pinned(name, header.line, named, dialect.columns)
    return named


def _require_pinned(name: str, line: int, named: list[str], pinned: Sequence[str]) -> None:
    """Raise BadInput where a header is not that of the profile."""
    if not pinned or named == list(pinned):
        return
    for at, (found, expected) in enumerate(zip(named, pinned, strict=False), start=1):
        if found != expected:
            raise BadInput(f"{name} line {line}: column {at} is {found!r}, and the profile has "
                           f"{expected!r}: {_CHANGED}")  # fmt: skip
    raise BadInput(f"{name} line {line}: it has {len(named)} columns, and the profile has "
                   f"{len(pinned)}: {_CHANGED}")  # fmt: skip


def _named(
    name: str, header: rowwise.Row, rows: Sequence[rowwise.Row], said: list[str]
) -> list[str]:
    cells = list(header.cells)
    while len(cells) > 1 and not cells[-1] and _empty_below(rows, header.line, len(cells) - 1):
        cells.pop()
    named = [cell or f"column {at}" for at, cell in enumerate(cells, start=1)]
    twice = sorted({cell for cell in named if named.count(cell) > 1})
    if twice:
        raise BadInput(f"{name} names a column twice: {', '.join(twice)}")
    said += [f"{name}: column {at} has no name" for at, cell in enumerate(cells, 1) if not cell]
    values = sum(bool(cell) and cell.replace(".", "", 1).isdecimal() for cell in named)
    if values == len(named):
        said.append(f"{name}: its first line looks like values; where it is no header, write "
                    "header = 0 in [read] of a profile")  # fmt: skip
    return named


def _empty_below(rows: Sequence[rowwise.Row], line: int, at: int) -> bool:
    below = (row.cells[at] for row in rows if row.line > line and len(row.cells) > at)
    return all(cell is None for cell in below)
