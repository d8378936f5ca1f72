"""A job log into a book, beside a hand-written DuckDB read and write of the same events."""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.measuring import Row, interleaved, stage

TARGET = 0.5
BASELINE = "DuckDB by hand"


def measure(full: bool) -> Iterator[Row]:
    """A row for a log with a row a job, and one for a log with a row an event."""
    rows = 5_000_000 if full else 500_000
    for kind in ("jobs", "events"):
        ran = {name: stage(f"importing.{name}", rows, kind=kind) for name in ("ours", "by_hand")}
        got = interleaved(ran, 3)
        name = f"import of {rows:,} rows of {kind}, CSV"
        yield Row.beside(name, got["ours"], got["by_hand"], BASELINE, "s", TARGET)
