"""reconciling: read both sides, type them by rule, compare them by key."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import polars

from tallybook.errors import BadInput
from tallybook.ops import statements
from tallybook.ops.interrupts import interruptible
from tallybook.ops.reconciling import plan, reading
from tallybook.ops.reconciling.plan import Cell
from tallybook.ops.reconciling.reading import Side, Table
from tallybook.ops.reconciling.result import SIDES, STATUSES, Reconciliation

_DIFFERENCES = {"key": polars.String, "column": polars.String, "local": polars.String,
                "cloud": polars.String}  # fmt: skip
_UNREADABLE = {"side": polars.String, "file": polars.String, "line": polars.Int64,
               "column": polars.String, "reason": polars.String, "text": polars.String}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Columns:
    keys: tuple[Cell, ...]
    compared: tuple[Cell, ...]
    names: tuple[str, ...]
    only_local: tuple[str, ...]
    only_cloud: tuple[str, ...]


def reconcile(
    left: Table,
    right: Table,
    *,
    key: str | Sequence[str],
    types: Mapping[str, str] | None = None,
) -> Reconciliation:
    """Compare ``left`` (local) with ``right`` (cloud) by the columns ``key``.

    A side is a path (CSV, TSV, NDJSON, JSON array, Parquet; gzip or not), a Polars frame or a
    warehouse: its cache, with the columns ``key`` and each field of the values.
    ``types`` gives columns a type: text (unless told), integer, decimal or timestamp. A cell that
    has no value of its type makes its row unreadable. Raises BadInput for an unknown column.
    """
    keys = (key,) if isinstance(key, str) else tuple(key)
    with (
        interruptible(),
        duckdb.connect() as connection,
        TemporaryDirectory(prefix="tallybook-reconcile-") as aside,
    ):
        connection.execute("load icu; set TimeZone = 'UTC'")
        connection.execute(statements.model("typing_cells"))
        local = reading.read(connection, "local", left, Path(aside))
        cloud = reading.read(connection, "cloud", right, Path(aside))
        columns = _columns(local, cloud, keys, types or {})
        _compare(connection, columns)
        return _told(connection, local, cloud, keys, columns)


def _columns(local: Side, cloud: Side, keys: tuple[str, ...], types: Mapping[str, str]) -> _Columns:
    if not keys or len(set(keys)) < len(keys):
        raise BadInput("name each key column once, and at least one")
    for side in (local, cloud):
        for name in keys:
            _require_column(name, side.columns, f"key column of {side.source}")
    for name, kind in types.items():
        _require_column(name, [*local.columns, *cloud.columns], "column to give a type to")
        _require_type(name, kind)

    def cell(name: str) -> Cell:
        kind = types.get(name, "text")
        return Cell(local.columns.index(name), cloud.columns.index(name), kind)

    shared = [name for name in local.columns if name in cloud.columns]
    compared = tuple(name for name in shared if name not in keys)
    return _Columns(
        keys=tuple(cell(name) for name in keys),
        compared=tuple(cell(name) for name in compared),
        names=compared,
        only_local=tuple(name for name in local.columns if name not in shared),
        only_cloud=tuple(name for name in cloud.columns if name not in shared),
    )


def _require_column(name: str, columns: Sequence[str], what: str) -> None:
    if name in columns:
        return
    folded = {column.casefold(): column for column in columns}
    near = get_close_matches(name.casefold(), list(folded), n=1, cutoff=0.5)
    nearest = f"; the nearest is {folded[near[0]]!r}" if near else f"; it has {', '.join(columns)}"
    raise BadInput(f"no {what} is named {name!r}{nearest}")


def _require_type(name: str, kind: str) -> None:
    if kind not in plan.TYPING:
        raise BadInput(f"column {name!r}: no type {kind!r}; choose one of {', '.join(plan.TYPING)}")


def _compare(connection: duckdb.DuckDBPyConnection, columns: _Columns) -> None:
    for side in SIDES:
        connection.execute(plan.typed(side, columns.keys, columns.compared))
    connection.execute(plan.keyed(columns.keys))
    connection.execute(plan.verdicts(columns.keys, columns.compared))


def _told(
    connection: duckdb.DuckDBPyConnection,
    local: Side,
    cloud: Side,
    keys: tuple[str, ...],
    columns: _Columns,
) -> Reconciliation:
    statuses = _statuses(connection, local, cloud)
    differences = _differences(connection, columns)
    sides = (local, cloud)
    return Reconciliation(
        key=keys,
        rows_local=local.rows + len(local.bad),
        rows_cloud=cloud.rows + len(cloud.bad),
        statuses=statuses,
        changed_cells_by_column=dict(Counter(differences["column"]).most_common()),
        columns_only_local=columns.only_local,
        columns_only_cloud=columns.only_cloud,
        warnings=tuple(_warnings(local, cloud, statuses, columns)),
        differences=differences,
        rows=connection.sql(plan.kept(columns.keys)).pl(),
        unreadable=polars.concat([_unreadable(connection, side, columns) for side in sides]),
    )


def _statuses(connection: duckdb.DuckDBPyConnection, local: Side, cloud: Side) -> dict[str, int]:
    found = connection.execute("select status, count(*) from verdicts group by status").fetchall()
    statuses = dict.fromkeys(STATUSES, 0) | dict(found)
    statuses["unreadable_local"] += len(local.bad)
    statuses["unreadable_cloud"] += len(cloud.bad)
    return statuses


def _differences(connection: duckdb.DuckDBPyConnection, columns: _Columns) -> polars.DataFrame:
    if not columns.compared:
        return polars.DataFrame(schema=_DIFFERENCES)
    found = connection.execute(plan.differences(columns.keys, columns.compared)).fetchall()
    rows = [(key, columns.names[at], local, cloud) for key, at, local, cloud in found]
    return polars.DataFrame(rows, schema=_DIFFERENCES, orient="row")


def _unreadable(
    connection: duckdb.DuckDBPyConnection, side: Side, columns: _Columns
) -> polars.DataFrame:
    rows: list[tuple[str, str, int | None, str | None, str, str | None]] = [
        (side.name, side.source, bad.line, None, bad.reason, bad.text) for bad in side.bad
    ]
    checked = {cell.at(side.name): cell.type for cell in (*columns.keys, *columns.compared)}
    for row, at, text in connection.execute(plan.bad_cells(side.name, list(checked))).fetchall():
        reason = f"no {checked[at]}"
        rows.append((side.name, side.source, side.line(row), side.columns[at], reason, text))
    return polars.DataFrame(rows, schema=_UNREADABLE, orient="row")


def _warnings(local: Side, cloud: Side, statuses: dict[str, int], columns: _Columns) -> list[str]:
    told = [*local.warnings, *cloud.warnings]
    for side in (local, cloud):
        if not side.rows:
            told.append(f"the {side.name} side ({side.source}) has no row that could be read")
        if side.bad:
            told.append(f"{len(side.bad)} rows of {side.source} cannot be read; rows that seem to "
                        f"be missing there may be among them")  # fmt: skip
    if local.rows and cloud.rows and statuses["only_local"] and not _shared_key(statuses):
        told.append("no key is on both sides; is the key column the right one?")
    if not columns.compared:
        told.append("no column beside the key is on both sides: only keys were compared")
    return told


def _shared_key(statuses: dict[str, int]) -> bool:
    return any(count for status, count in statuses.items() if not status.startswith("only_"))
