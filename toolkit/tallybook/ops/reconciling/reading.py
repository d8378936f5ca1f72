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
from tallybook.ops.exports import jsons, reading, suspicions
from tallybook.ops.exports.jsons import Row
from tallybook.ops.exports.ledger import BadRow, Place
from tallybook.ops.exports.places import Places
from tallybook.ops.exports.profile import Profile
from tallybook.ops.warehouse import Warehouse

Table = str | Path | Warehouse

_COMPARED = {kind: kind for kind in ("integer", "decimal", "timestamp")} | {"date": "timestamp"}


@dataclass(slots=True)
class Side:
    """One side as read: the DuckDB table ``name`` with the text cells r0, r1, …; n, the number of
    the row from 1; and in_flight.

    ``types`` has the type of each column that the profile of this side gives one.
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
) -> Side:
    """Read ``given`` into the table ``name``; ``aside`` is a folder for what must be unpacked.

    ``profile`` says how a file is to be read; without one its ending and first bytes do.
    """
    if isinstance(given, Warehouse):
        return _read_cache(connection, name, given)
    return _read_export(connection, name, given, aside, profile or Profile())


def _read_export(
    connection: duckdb.DuckDBPyConnection, name: str, given: str | Path, aside: Path,
    profile: Profile,
) -> Side:  # fmt: skip
    found = reading.load(connection, f"{name}_rows", given, aside / name, profile)
    target = found.target
    if not target.columns:
        raise BadInput(f"{found.source} holds no row")
    target.show(name)
    places = Places(connection, found, profile.limits)
    cells = {at: f"c{at}" for at in range(len(target.columns)) if target.rule(at).rewrites}
    types = {column: _COMPARED.get(rule.kind, "text") for column, rule in profile.rules.items()}
    counted = suspicions.counts(found.source, found.rows + len(found.bad), profile.last_rows)
    warnings = [*found.warnings, *counted]
    return Side(name, found.source, target.columns, found.rows, found.bad, warnings,
                types=types, cells=cells, places=places)  # fmt: skip


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
    frame = frame.with_columns(in_flight=polars.lit(False)).with_row_index("n", offset=1)
    connection.register("given", frame)
    connection.execute(f"create table {name}_rows as select * from given")  # noqa: S608 - our name
    connection.execute(f"create view {name} as from {name}_rows")
    connection.unregister("given")
    return Side(name, source, columns, frame.height)
