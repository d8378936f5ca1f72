"""Stages of ``bench_export``: an export as a typed relation with its ledger; DuckDB beside it."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import duckdb

from tallybook.ops import memory
from tallybook.ops.exports import choosing
from tallybook.ops.exports.export import read_export
from tallybook.statements import load

BY_HAND = load("tests.benchmarks", "exported.sql")
TYPES = {
    "id": "integer", "price": "decimal(18,2)", "quantity": "integer", "made_at": "timestamp",
    "day": "date", "ok": "boolean", "rate": "decimal(18,2)",
}  # fmt: skip


def make(folder: Path, rows: int) -> Path:
    """An export of ten columns as CSV."""
    path = folder / "export.csv"
    with duckdb.connect() as connection:
        connection.sql(BY_HAND["made"], params={"rows": rows}).write_csv(str(path))
    return path


def ours(folder: Path, path: str, **_: object) -> float:
    """Seconds until every row is typed, checked and counted."""
    columns = {name: {"type": kind} for name, kind in TYPES.items()}
    profile = choosing.parse("export", {"layout": "csv", "columns": columns}, "export")
    start = time.perf_counter()
    with read_export(path, profile=profile) as export:
        assert export.ledger.complete
        return time.perf_counter() - start


def ours_mb(folder: Path, path: str, **_: object) -> float:
    """The peak of memory of a process that reads an export."""
    ours(folder, path)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def declared(folder: Path, path: str, **_: object) -> float:
    """Seconds of DuckDB with declared types, under the same limit of memory."""
    with memory.connect(folder, "1GB") as connection:
        connection.execute("set preserve_insertion_order = true")
        start = time.perf_counter()
        connection.execute(BY_HAND["declared"], {"path": path})
        return time.perf_counter() - start
