"""Stages of ``bench_load``: our load, a strict read by hand into such a table, compaction."""

from __future__ import annotations

import resource
import time
from pathlib import Path

from tallybook.ops import compacting, memory
from tallybook.ops.fields import PROVEN_COLUMNS
from tallybook.ops.warehouse import Warehouse

STRICT = """
create table events as
select *
from read_json($files, columns = $columns, format = 'newline_delimited', auto_detect = false)
"""


def load(folder: Path, book: str, **_: object) -> float:
    """Seconds of opening a warehouse over ``book``."""
    start = time.perf_counter()
    with Warehouse(Path(book), folder):
        return time.perf_counter() - start


def strict(folder: Path, book: str, **_: object) -> float:
    """Seconds of the strict typed read, under the same limit of memory; a bad line fails it."""
    files = [str(path) for path in sorted(Path(book, "log").glob("*.ndjson*"))]
    start = time.perf_counter()
    with memory.connect(folder / "spill") as connection:
        connection.execute(STRICT, {"files": files, "columns": PROVEN_COLUMNS})
        return time.perf_counter() - start


def compact(folder: Path, book: str, **_: object) -> float:
    """Seconds of a compaction of all closed segments."""
    start = time.perf_counter()
    compacting.compact(Path(book), folder)
    return time.perf_counter() - start


def peak_mb(folder: Path, book: str, **_: object) -> float:
    """The peak of memory of a process that opens a warehouse."""
    load(folder, book)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
