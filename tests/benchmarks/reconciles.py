"""Stages of ``bench_reconcile``: ours, the same by hand in DuckDB, and peers. Each reads both files
and says how many rows and cells differ; what it imports is not counted."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars

from tallybook.ops import memory
from tallybook.statements import load

BY_HAND = load("tests.benchmarks", "reconciled.sql")
TYPES = {"quantity": "integer", "price": "decimal", "changed_at": "timestamp", "score": "integer"}


def make(folder: Path, kind: str, rows: int) -> tuple[Path, Path]:
    """A table of ten columns and an edited copy of it, as files."""
    left, right = folder / f"left.{kind}", folder / f"right.{kind}"
    with memory.connect(folder / "spill") as connection:
        made = connection.sql(BY_HAND["made"], params={"rows": rows})
        _write(made, left, kind)
        connection.execute("set variable made = $1", [str(left)])
        source = BY_HAND[kind].replace("{side}", "made")
        connection.execute(f"create view made as {source}")
        _write(connection.sql(BY_HAND["edited"]), right, kind)
    return left, right


def _write(relation: duckdb.DuckDBPyRelation, path: Path, kind: str) -> None:
    write = relation.write_csv if kind == "csv" else relation.write_parquet
    write(str(path))


def ours(folder: Path, left: str, right: str, **_: object) -> float:
    """Seconds of our reconciliation, to the list of the differences."""
    from tallybook.ops.reconciling import reconcile

    def run() -> object:
        with reconcile(left, right, key="id", types=TYPES, out=folder) as found:
            return found.statuses, found.differences

    return _seconds(run)


def ours_mb(folder: Path, left: str, right: str, **_: object) -> float:
    """The peak of memory of a process that reconciles."""
    ours(folder, left, right)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def by_hand(folder: Path, left: str, right: str, **_: object) -> float:
    """Seconds of the query that one would write: every cell text first, typed by rule."""
    with duckdb.connect(
        config={"temp_directory": str(folder), "memory_limit": "8GB"}
    ) as connection:
        connection.execute("load icu; set TimeZone = 'UTC'; set preserve_insertion_order = false")
        return _seconds(lambda: _joined(connection, left, right))


def _joined(connection: duckdb.DuckDBPyConnection, left: str, right: str) -> object:
    for side, path in (("one", left), ("other", right)):
        connection.execute(f"set variable {side} = $1", [path])
        source = BY_HAND["csv" if path.endswith(".csv") else "parquet"].replace("{side}", side)
        connection.execute(f"create view {side}_rows as {source}")
        connection.execute(BY_HAND["typed"].replace("{side}", side))
    return connection.execute(BY_HAND["compared"]).fetchall()


def read(path: str) -> polars.DataFrame:
    """A file as a peer needs it: text first, then typed, or 5.0 would not be 5."""
    is_csv = path.endswith(".csv")
    frame = polars.read_csv(path, infer_schema=False) if is_csv else polars.read_parquet(path)
    return frame.with_columns(
        polars.col("quantity", "score").cast(polars.Int64),
        polars.col("price").cast(polars.Decimal(38, 9)),
        polars.col("changed_at").str.to_datetime(time_unit="us", time_zone="UTC"),
    )


def diffly(folder: Path, left: str, right: str, **_: object) -> float:
    """Seconds of diffly on Polars frames, to its counts and its unequal rows."""
    from diffly import compare_frames

    def run() -> object:
        found = compare_frames(read(left), read(right), primary_key="id")
        only = found.num_rows_left_only(), found.num_rows_right_only()
        return only, found.change_counts("price"), found.joined_unequal()

    return _seconds(run)


def polars_join(folder: Path, left: str, right: str, **_: object) -> float:
    """Seconds of a full join of Polars frames, to the changed cells of each column."""

    def run() -> object:
        joined = read(left).join(read(right), on="id", how="full", suffix="_other")
        names = [name for name in joined.columns if f"{name}_other" in joined.columns]
        return joined.select(
            polars.col(name).ne_missing(polars.col(f"{name}_other")).sum() for name in names
        )

    return _seconds(run)


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
