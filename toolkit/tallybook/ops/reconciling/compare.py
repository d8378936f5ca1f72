"""reconciling: read both sides, type them by rule, compare them by key."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import duckdb
import polars

from tallybook.ops.exports import suspicions
from tallybook.ops.exports.delimited import NotAsItLies
from tallybook.ops.exports.profile import Profile
from tallybook.ops.reconciling import columns as columns_
from tallybook.ops.reconciling import hints, parquet, plan, reading, rules, tables
from tallybook.ops.reconciling.columns import Columns
from tallybook.ops.reconciling.reading import Side
from tallybook.ops.reconciling.result import SIDES, STATUSES, Reconciliation
from tallybook.ops.reconciling.room import MEMORY, Progress, Room
from tallybook.ops.reconciling.rules import Given, Rule
from tallybook.ops.reconciling.tables import InMemory
from tallybook.ops.warehouse import Warehouse

Table: TypeAlias = str | Path | Warehouse | InMemory

_ROWS_AT_ONCE = 25_000_000
_UNREADABLE = {"side": polars.String, "file": polars.String, "line": polars.Int64,
               "column": polars.String, "reason": polars.String, "text": polars.String}  # fmt: skip


def reconcile(
    left: Table,
    right: Table,
    *,
    key: str | Sequence[str],
    types: Mapping[str, str] | None = None,
    columns: Given | None = None,
    profile: Profile | None = None,
    out: str | Path | None = None,
    memory: str = MEMORY,
    progress: Progress | None = None,
) -> Reconciliation:
    """Compare ``left`` (local) with ``right`` (cloud) by the columns ``key``.

    A side is a path (CSV, TSV, NDJSON, JSON array, Parquet; gzip or not), a Polars frame, an Arrow
    table, a DuckDB relation or a warehouse: its cache, with the columns ``key`` and each field of
    the values. ``columns`` gives a column rules (see ``Rule``), ``types`` its type alone: text
    (unless told), integer, decimal or timestamp. A cell that has no value of its type makes its row
    unreadable. ``profile`` says how the export is read and may have rules too; those given here
    count more.

    It takes no more than ``memory``; the rest goes into a folder in ``out``, else in TMPDIR, until
    the reconciliation is closed. ``progress`` is told a stage and how far it is of how much.
    Raises BadInput for an unknown column, contradictory rules or a file that cannot be read, and
    TypeError for a side that is none of these.
    """
    _require_table("local", left)
    _require_table("cloud", right)
    typed: Given = {name: {"type": kind} for name, kind in (types or {}).items()}
    given = (profile.comparing if profile else {}, typed, columns or {})
    asked = rules.merged(*map(rules.parse, given))
    room = Room(Path(out) if out else None, memory, progress)
    try:
        with room.checked():
            keys = (key,) if isinstance(key, str) else tuple(key)
            return _either_way(room, (left, right), keys, asked, profile)
    except BaseException:
        room.close()
        raise


def _either_way(
    room: Room,
    given: tuple[Table, Table],
    keys: Sequence[str],
    asked: Mapping[str, Rule],
    profile: Profile | None,
) -> Reconciliation:
    """Compare files where they lie; copied, where DuckDB does not read one as it is written."""
    try:
        return _compared(room, given, keys, asked, profile, lying=True)
    except NotAsItLies:
        room.drop_all_but(())
        return _compared(room, given, keys, asked, profile, lying=False)


def _require_table(name: str, given: object) -> None:
    if not isinstance(given, str | os.PathLike | Warehouse | InMemory):
        kind = f"{type(given).__module__.partition('.')[0]}.{type(given).__name__}"
        raise TypeError(
            f"the {name} side is a {kind.removeprefix('builtins.')}: give a path, a Polars frame, "
            "an Arrow table, a DuckDB relation or a warehouse; of a pandas frame, a dict of "
            "columns or a list of rows give polars.DataFrame(...)"
        )


def _compared(
    room: Room,
    given: tuple[Table, Table],
    keys: Sequence[str],
    asked: Mapping[str, Rule],
    profile: Profile | None,
    *,
    lying: bool,
) -> Reconciliation:
    local = _read(room, "local", given[0], None, lying=lying)
    cloud = _read(room, "cloud", given[1], profile, lying=lying)
    room.keep_order(kept=False)
    typed = rules.parse({name: {"type": kind} for name, kind in cloud.types.items()})
    columns = columns_.match(local, cloud, keys, rules.merged(typed, asked))
    for column in columns.all:
        room.set(column.variables())
    try:
        _group(room, (local, cloud), columns)
        statuses = _statuses(room)
        _detail(room, (local, cloud), columns, statuses)
        told = _told(room, local, cloud, columns, statuses)
    except duckdb.IOException:
        _require_same(local, cloud)
        raise
    except duckdb.InvalidInputException:
        _require_same(local, cloud)
        if local.lies or cloud.lies:
            raise NotAsItLies from None
        raise
    _require_same(local, cloud)
    return told


def _require_same(*sides: Side) -> None:
    """Raise IncompleteInput where a file that is read where it lies was written to meanwhile."""
    for side in sides:
        if side.stamped:
            side.stamped.require_same()


def _group(room: Room, sides: tuple[Side, Side], columns: Columns) -> None:
    """Read both sides, and group their rows by key."""
    for side in sides:
        room.run(plan.cells(side, columns))
    if any(side.lies for side in sides):
        room.spare_memory()
    parts = 1 + max(side.rows for side in sides) // _ROWS_AT_ONCE
    reads = _bytes_lying(sides)
    for part in range(parts):
        room.run(plan.keyed(sides, columns, part, parts), "comparing", part, parts, reads)
    for side in sides:
        reading.settle(room.connection, side)
    if any(side.header for side in sides) and room.all("select 1 from keyed where again limit 1"):
        raise NotAsItLies
    if room.all("select 1 from keyed where shortened limit 1"):
        for side in sides:
            _require_whole_ids(room, side, columns)


def _bytes_lying(sides: tuple[Side, Side]) -> int:
    """The bytes of the CSV files that lie where they are: DuckDB takes each for a few rows."""
    return sum(side.stamped.stamp[0] for side in sides if side.lies and side.stamped)


def _require_whole_ids(room: Room, side: Side, columns: Columns) -> None:
    if side.lies and not suspicions.may_have_exponents(side.lies.files[0]):
        return
    with room.checked():
        for key in columns.keys:
            at = key.at(side.name)
            suspicions.require_whole_ids(room.connection, side.name, side.source, at, key.name)


def _read(room: Room, name: str, given: Table, profile: Profile | None, *, lying: bool) -> Side:
    with room.checked():
        if isinstance(given, InMemory):
            return tables.read(room.connection, name, given)
        if not profile and parquet.stands_alone(given):
            return parquet.read(room.connection, name, given)
        aside = room.aside / ("left" if lying else "copied")
        return reading.read(room.connection, name, given, aside, profile, lying=lying)


def _statuses(room: Room) -> dict[str, int]:
    """Rows by status as the hashes tell them; ``apart`` with those of no whole key on each side."""
    statuses = dict.fromkeys(STATUSES, 0)
    apart = [0, 0]
    for status, local, cloud in room.all(
        "select status, sum(local_rows)::bigint, sum(cloud_rows)::bigint from keyed group by status"
    ):
        if status == "apart":
            apart = [local, cloud]
        elif status in STATUSES:
            statuses[status] += max(local, cloud)
        else:
            statuses[f"{status}_local"] += local
            statuses[f"{status}_cloud"] += cloud
    for side, count in zip(SIDES, apart, strict=True):
        statuses[f"apart_{side}"] = count
    return statuses


def _detail(
    room: Room, sides: tuple[Side, Side], columns: Columns, statuses: dict[str, int]
) -> None:
    """The rows that do not match, read again and whole; the statuses with what they tell."""
    stage = "finding differences" if _any_apart(statuses) else ""
    for part, statement in enumerate(plan.apart(sides, columns)):
        room.run(statement, "" if part else stage, 0, 4, _bytes_lying(sides))
    if sum(statuses.pop(f"apart_{side.name}") for side in sides):
        room.run(plan.keyless(sides, columns))
        for side in sides:
            told = dict(room.all(plan.counted_keyless(side.name, columns)))
            statuses[f"null_key_{side.name}"] += told.get("null_key", 0)
            statuses[f"unreadable_{side.name}"] += told.get("unreadable", 0)
    for side in sides:
        statuses[f"unreadable_{side.name}"] += len(side.bad)
    room.run(plan.pairs(columns), stage, 1, 4)
    ((tolerated,),) = room.all(plan.tolerated(columns))
    statuses["match"] += tolerated
    statuses["differs"] -= tolerated
    statuses["tolerated"] = tolerated
    room.keep_order(kept=True)
    room.run(plan.rows(columns), stage, 2, 4)
    room.run(plan.differences(columns), stage, 3, 4)


def _any_apart(statuses: Mapping[str, int]) -> bool:
    return any(rows for status, rows in statuses.items() if status != "match")


def _told(
    room: Room, local: Side, cloud: Side, columns: Columns, statuses: dict[str, int]
) -> Reconciliation:
    tolerated = statuses.pop("tolerated")
    changed = _differences(room, columns)
    _unreadable(room, (local, cloud), columns)
    rows = {side: _rows(statuses, side) for side in SIDES}
    apart = hints.apart(local, cloud, rows, statuses)
    for side in (local, cloud):
        if side.places:
            side.warnings += suspicions.counts(side.source, rows[side.name], side.last_rows)
    warnings = hints.warnings(room, local, cloud, columns, statuses, apart)
    room.drop_all_but(plan.KEPT)
    return Reconciliation(
        key=tuple(column.name for column in columns.keys),
        source_local=local.source,
        source_cloud=cloud.source,
        rows_local=rows["local"],
        rows_cloud=rows["cloud"],
        statuses=statuses,
        changed_cells_by_column=changed,
        columns_only_local=columns.only_local,
        columns_only_cloud=columns.only_cloud,
        warnings=tuple(warnings),
        apart=apart,
        tolerated=tolerated,
        room=room,
    )


def _rows(statuses: Mapping[str, int], side: str) -> int:
    shared = statuses["match"] + statuses["differs"]
    return shared + sum(n for status, n in statuses.items() if status.endswith(f"_{side}"))


def _differences(room: Room, columns: Columns) -> dict[str, int]:
    """Make the relation ``differences``; changed cells by column, most first."""
    names = polars.DataFrame(
        {"place": range(len(columns.compared)), "column": [c.name for c in columns.compared]},
        schema={"place": polars.Int64, "column": polars.String},
    )
    room.keep("names", names)
    room.run(plan.DIFFERENCES)
    return dict(room.all(plan.CHANGED_BY_COLUMN))


def _unreadable(room: Room, sides: tuple[Side, Side], columns: Columns) -> None:
    """Make the relation ``unreadable``: bad rows, then bad cells, of each side."""
    found = [frame for side in sides for frame in _unreadable_of(room, side, columns)]
    room.keep("unreadable", polars.concat(found))


def _unreadable_of(room: Room, side: Side, columns: Columns) -> list[polars.DataFrame]:
    rows: list[tuple[str, str, int | None, str | None, str, str | None]] = [
        (side.name, bad.file or side.source, bad.line, None, bad.reason, bad.text)
        for bad in side.bad
    ]
    checked = {column.at(side.name): column.rule.kind for column in columns.all}
    for row, at, text in room.all(plan.bad_cells(side, columns)):
        place = side.place(row)
        named = side.columns[at]
        rows.append((side.name, place.file, place.line, named, f"no {checked[at]}", text))
    return [polars.DataFrame(rows, schema=_UNREADABLE, orient="row")]
