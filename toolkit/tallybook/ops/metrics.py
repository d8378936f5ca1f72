"""The rolling metrics: CSV files of a few thousand rows a day, read cell by cell as text."""

import csv
from collections.abc import Iterable
from pathlib import Path

import duckdb

from tallybook.ops import statements
from tallybook.ops.judge import TEXT_SHOWN, BadLine

COLUMNS = (
    "interval_started_at", "interval_ended_at", "node_id", "worker",
    "pending", "leased", "done", "dead", "cancelled", "oldest_pending_s",
    "enqueued", "done_count", "retried_count", "dead_count", "rescued_count",
    "lease_timeout_count", "refused_count", "in_process",
    "wait_p50_ms", "wait_p95_ms", "wait_p99_ms", "wait_mean_ms",
    "run_p50_ms", "run_p95_ms", "run_p99_ms", "run_mean_ms",
    "cache_hits", "cache_misses", "book_bytes",
)  # fmt: skip

Cells = list[str | None]


def load(connection: duckdb.DuckDBPyConnection, files: Iterable[Path]) -> list[BadLine]:
    """Fill `metric_cells` and make the view `metrics`; the rows that could not be read."""
    rows: list[Cells] = []
    bad: list[BadLine] = []
    for file in files:
        _read(file, rows, bad)
    connection.execute(statements.model("metric_cells"))
    if rows:
        connection.execute(statements.query("add_metric_cells"), [rows])
    connection.execute("create view metrics as " + statements.model("metrics"))
    return bad


def _read(file: Path, rows: list[Cells], bad: list[BadLine]) -> None:
    lines = file.read_bytes().split(b"\n")
    header = next(csv.reader([lines[0].decode("utf-8", "replace")]), [])
    offset = 0
    for number, line in enumerate(lines, start=1):
        if number > 1 and line.strip():
            _read_row(file, number, offset, line, header, rows, bad)
        offset += len(line) + 1


def _read_row(
    file: Path,
    number: int,
    offset: int,
    line: bytes,
    header: list[str],
    rows: list[Cells],
    bad: list[BadLine],
) -> None:
    text = line.decode("utf-8", "replace")
    cells = next(csv.reader([text]), [])
    if len(cells) != len(header) or "\ufffd" in text or "\x00" in text:
        reason = f"{len(cells)} cells where the header has {len(header)}"
        bad.append(BadLine(file.name, number, offset, reason, text[:TEXT_SHOWN]))
        return
    named = dict(zip(header, cells, strict=True))
    rows.append([named.get(column) or None for column in COLUMNS])
