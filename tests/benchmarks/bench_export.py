"""Reading an export of ten columns, typed and checked, beside DuckDB with declared types, which
rounds 1.5 to 2 and keeps no ledger."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.benchmarks import exports
from tests.benchmarks.measuring import WORKSHOP, Row, interleaved, stage

QUICK, FULL = 1_000_000, 10_000_000
DECLARED, LIMIT_MB = 0.69, 1600.0  # 1 / 1.45; the setting of 1 GB, and Python with its libraries


def measure(full: bool) -> Iterator[Row]:
    """Rows for 1 million rows; with ``full`` for 10 million, and its memory."""
    yield from _at(QUICK, 5)
    if full:
        yield from _at(FULL, 3)


def _at(rows: int, rounds: int) -> Iterator[Row]:
    WORKSHOP.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=WORKSHOP))
    try:
        path = str(exports.make(folder, rows).absolute())
        of = f"{rows // 1_000_000} million rows of CSV"
        got = interleaved({name: _stage(name, path) for name in ("ours", "declared")}, rounds)
        yield Row.beside(f"read an export, {of}", got["ours"], got["declared"],
                         "DuckDB with declared types", "s", DECLARED)  # fmt: skip
        taken = interleaved({"mb": _stage("ours_mb", path)}, 1)["mb"]
        yield Row(f"peak memory of reading, {of}", taken.median, LIMIT_MB, "1.6 GB", "MB", 1)
    finally:
        shutil.rmtree(folder)


def _stage(name: str, path: str) -> Callable[[], float]:
    return stage(f"exports.{name}", 0, path=path)
