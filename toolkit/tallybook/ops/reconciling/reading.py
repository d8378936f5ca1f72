"""Reading one side: every cell as text, every row accounted for.

An unquoted empty CSV cell is null, a quoted one is ''. Nothing is guessed: ids keep their zeros,
``NA`` stays ``NA``, numbers stay as they are written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import polars

from tallybook.errors import BadInput, IncompleteInput, TallybookError
from tallybook.ops import cached
from tallybook.ops.exports import delimited, jsons, reading
from tallybook.ops.exports.account import Reading
from tallybook.ops.exports.delimited import NotAsItLies
from tallybook.ops.exports.jsons import Row
from tallybook.ops.exports.ledger import BadRow, Place
from tallybook.ops.exports.parts import Stamped
from tallybook.ops.exports.places import Places
from tallybook.ops.exports.profile import Profile
from tallybook.ops.warehouse import Warehouse

Table = str | Path | Warehouse

_HEAD = 1 << 20
_COMPARED = {kind: kind for kind in ("integer", "decimal", "timestamp")} | {"date": "timestamp"}


@dataclass(slots=True)
class Side:
    """One side as read: the DuckDB table ``name`` with the text cells r0, r1, … and n, the number
    of the row from 1.

    ``types`` has the type of each column that the profile of this side gives one. A CSV file that
    ``lies`` where it is has been looked at only: ``rows`` is about right, and ``settle`` says the
    rest once all of it was read.
    """

    name: str
    source: str
    columns: list[str]
    rows: int
    bad: list[BadRow] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    types: Mapping[str, str] = field(default_factory=dict)
    cells: Mapping[int, str] = field(default_factory=dict)
    places: Places | None = None
    last_rows: int | None = None
    lies: Reading | None = None
    stamped: Stamped | None = None

    @property
    def header(self) -> str:
        """SQL of the cell r0 of a header that stands again among the rows, which a file that lies
        may have; '' for any other."""
        file = self.lies.files[0] if self.lies else None
        has_header = file is not None and file.found is not None and file.found.header
        return f"getvariable('{self.name}_header')" if has_header else ""

    def cell(self, at: int) -> str:
        """SQL of the cell at a position in standard notation, which each type is told from:
        1.50 where the file has 1,50; null where it has a word for it. ``r<at>`` is what it has."""
        return self.cells.get(at, f"r{at}")

    def place(self, row: int) -> Place:
        """Where a row begins in its file; asked for in their order, a file is read once for all."""
        return self.places.of(row) if self.places else Place(self.source)

    def line(self, row: int) -> int | None:
        """The line where a row begins, where its format has lines."""
        return self.place(row).line


def read(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    given: Table,
    aside: Path,
    profile: Profile | None = None,
    *,
    lying: bool = False,
) -> Side:
    """Read ``given`` into the table ``name``; ``aside`` is a folder for what must be unpacked.

    ``profile`` says how a file is to be read; without one its ending and first bytes do. ``lying``
    leaves the rows of a clean CSV file where they are, until ``settle``.
    """
    if isinstance(given, Warehouse):
        return _read_cache(connection, name, given)
    profile = profile or Profile()
    found = reading.load(connection, f"{name}_rows", given, aside / name, profile, lying=lying)
    target = found.target
    if not target.columns:
        raise BadInput(f"{found.source} holds no row")
    target.show(name)
    side = Side(name, found.source, target.columns, found.rows, found.bad, found.warnings)
    side.places = Places(connection, found, profile.limits)
    side.cells = {at: f"c{at}" for at in range(len(target.columns)) if target.rule(at).rewrites}
    side.types = {one: _COMPARED.get(rule.kind, "text") for one, rule in profile.rules.items()}
    side.last_rows = profile.last_rows
    if target.source:
        _leave(connection, side, found)
    return side


def _leave(connection: duckdb.DuckDBPyConnection, side: Side, found: Reading) -> None:
    text = found.files[0].text
    if text is None:
        raise NotAsItLies
    side.lies, side.stamped, side.rows = found, Stamped.of(text.path), _rows_about(text.path)
    connection.execute(f"set variable {side.name}_header = $1", [side.columns[0]])


def _rows_about(path: Path) -> int:
    """How many lines a text has if all are like the first ones."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return head.count(b"\n") * path.stat().st_size // max(1, len(head))


def settle(connection: duckdb.DuckDBPyConnection, side: Side) -> None:
    """Take account of the rows of a side that lies, once all of it was read. Raises NotAsItLies
    where it must be read in another way."""
    if side.lies is None:
        return
    file, target = side.lies.files[0], side.lies.target
    if file.text is None or file.found is None:
        raise NotAsItLies
    side.bad += delimited.settle(connection, file.text, file.found, target).bad


def _read_cache(connection: duckdb.DuckDBPyConnection, name: str, warehouse: Warehouse) -> Side:
    """The cache as the log folds it: ``key``, and the fields of each value."""
    cache = cached.cache_as_of(warehouse)
    entries = [{"key": key} | jsons.row(_rewritten(jsons.parse(value)))
               for key, value in cache.select("key", "value").iter_rows()]  # fmt: skip
    if not entries:
        raise _empty(warehouse)
    columns = list(dict.fromkeys(column for entry in entries for column in entry))
    source = f"the cache of {warehouse.book}"
    return _from_frame(connection, name, source, _frame(columns, entries))


def _empty(warehouse: Warehouse) -> TallybookError:
    """Nothing is cached: that says nothing about the other side, least of all where lines lack."""
    if "cache" in warehouse.silent:
        return BadInput(
            f"{warehouse.book}: {warehouse.silent['cache']}, so there is nothing to compare an "
            "export with; compare two files: tallybook reconcile EXPORT --local FILE"
        )
    words = f"the cache of {warehouse.book} is empty: there is nothing to compare"
    if notes := warehouse.notes:
        return IncompleteInput(f"{words}, and its log is incomplete: {notes[0]}")
    return BadInput(f"{words}; name another book, or a file with --local")


def _rewritten(value: object) -> object:
    """Numbers with the digits that Python gives them: DuckDB writes 1e-05 as 0.00001."""
    if isinstance(value, jsons.RawNumber) and any(mark in value for mark in ".eE"):
        return jsons.RawNumber(repr(float(value)))
    if isinstance(value, dict):
        return {name: _rewritten(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_rewritten(item) for item in value]
    return value


def _frame(columns: list[str], rows: list[Row]) -> polars.DataFrame:
    cells = {column: [row.get(column) for row in rows] for column in columns}
    return polars.DataFrame(cells, schema=dict.fromkeys(columns, polars.String))


def _from_frame(
    connection: duckdb.DuckDBPyConnection, name: str, source: str, frame: polars.DataFrame
) -> Side:
    columns = frame.columns
    frame = frame.rename({column: f"r{at}" for at, column in enumerate(columns)})
    frame = frame.with_row_index("n", offset=1)
    connection.register("given", frame)
    connection.execute(f"create table {name}_rows as select * from given")  # noqa: S608 - our name
    connection.execute(f"create view {name} as from {name}_rows")
    connection.unregister("given")
    return Side(name, source, columns, frame.height)
