"""What looks wrong in an export although it can be read: ids that a spreadsheet damaged, dates that
mean two days, a count that is round or much smaller than last time."""

# ruff: noqa: S608 - statements are put together from positions
import re

import duckdb

from tallybook.errors import IncompleteInput
from tallybook.ops.exports.account import FileRead, Reading
from tallybook.ops.exports.profile import Profile, Rule

_SHEET_ROWS = (1_048_575, 1_048_576, 65_535, 65_536)
_ROUND = 1000
_SHRUNK = 0.8
_DAMAGED = r"[+-]?[0-9](\.[0-9]+)?E\+[0-9]{2}"
_SLASHED = re.compile(r"([0-9]{1,2})([/.\-])([0-9]{1,2})\2([0-9]{2,4})(?:[ T].*)?")


def told(connection: duckdb.DuckDBPyConnection, found: Reading, profile: Profile) -> list[str]:
    """What the user should know before a verdict rests on this export."""
    rows = found.rows + len(found.bad)
    return [*counts(found.source, rows, profile.last_rows), *_damaged(connection, found)]


def counts(source: str, rows: int, last: int | None) -> list[str]:
    """A count at which exports are cut, or one much smaller than last time."""
    said = []
    if rows in _SHEET_ROWS:
        said.append(f"{source} has {rows:,} rows, the most that a spreadsheet takes; is it cut?")
    elif rows >= _ROUND and rows % _ROUND == 0:
        said.append(f"{source} has exactly {rows:,} rows; is it cut at a limit?")
    if last and rows < _SHRUNK * last:
        said.append(f"{source} has {rows:,} rows, and had {last:,} when its profile was written")
    return said


def _damaged(connection: duckdb.DuckDBPyConnection, found: Reading) -> list[str]:
    """Text columns with cells like 9.91E+15."""
    target = found.target
    texts = [at for at in range(len(target.columns)) if target.rule(at).kind == "text"]
    if not texts or not found.rows or not any(may_have_exponents(file) for file in found.files):
        return []
    mark = "t" if target.is_typed else "r"
    counted = ", ".join(f"count(*) filter ({_looks_damaged(f'{mark}{at}')})" for at in texts)
    (row,) = connection.execute(f"select {counted} from {target.name}").fetchall()
    return [
        f"damaged ids? {cells:,} cells of column {target.columns[at]!r} of {found.source} are "
        "written like 9.91E+15, as a spreadsheet does to long numbers"
        for at, cells in zip(texts, row, strict=True)
        if cells
    ]


def may_have_exponents(file: FileRead) -> bool:
    """False where one look over the bytes of a file said that it has none: the rows are spared."""
    return file.text is None or file.text.look.has_exponents


def _looks_damaged(cell: str) -> str:
    return f"contains({cell}, 'E+') and regexp_full_match({cell}, '{_DAMAGED}')"


def require_whole_ids(
    connection: duckdb.DuckDBPyConnection, table: str, source: str, at: int, column: str
) -> None:
    """Raise IncompleteInput where the cells ``r<at>`` of a key are numbers that a spreadsheet
    shortened: no two sides can be paired by them."""
    found = connection.execute(
        f"select r{at}, count(*) over () from {table} where {_looks_damaged(f'r{at}')} limit 1"
    ).fetchall()
    if found:
        word, cells = found[0]
        raise IncompleteInput(
            f"damaged ids: {cells:,} cells of the key column {column!r} of {source} are like "
            f"{word}: a spreadsheet shortened them; export again, and do not open the file in one"
        )


def unfit(word: str, rule: Rule) -> str:
    """Why a cell has no value of the type of its column."""
    if rule.is_time and not rule.format and (found := _SLASHED.fullmatch(word)):
        first, second = int(found[1]), int(found[3])
        if first <= 12 and second <= 12 and first != second:
            return f"no {rule.kind}: the date means two days; give the column a format"
        return f"no {rule.kind}: give the column a format"
    if rule.kind == "integer" and re.fullmatch(r"[+-]?[0-9]{19,}", word):
        return "no integer of 64 bits; give the column the type decimal(38,0) or text"
    return f"no {rule.type}"
