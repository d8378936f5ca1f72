"""Loading a log without loss beside a strict typed ``read_json`` of DuckDB, and compacting it.

Both fill a table in memory under the same limit, spilling to the same disk. The strict read of a
log with bad lines is that of the same log without them, as it would fail.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.benchmarks.logs import write_book
from tests.benchmarks.measuring import WORKSHOP, Figure, Row, interleaved, stage

from tallybook.layout import Layout
from tallybook.log.compress import compress_closed

EVENTS, QUICK = 20_000_000, 1_000_000
TORN_EVERY = 1_000_000
LIMIT_MB = 1000.0


def measure(full: bool) -> Iterator[Row]:
    """Rows for a log of 1 million events; of 20 million with ``full``."""
    events, rounds = (EVENTS, 3) if full else (QUICK, 3)
    WORKSHOP.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=WORKSHOP))
    try:
        clean = write_book(folder / "clean", events)
        torn = write_book(folder / "torn", events, torn_every=TORN_EVERY)
        yield from _plain(clean, torn, f"{events // 1_000_000} million events", rounds)
        shutil.rmtree(torn)
        compress_closed(Layout(clean))
        yield from _proven(clean, f"{events // 1_000_000} million events", rounds)
    finally:
        shutil.rmtree(folder)


def _plain(clean: Path, torn: Path, of: str, rounds: int) -> Iterator[Row]:
    ran = {"clean": _stage("load", clean), "torn": _stage("load", torn)}
    got = interleaved(ran | {"strict": _stage("strict", clean)}, rounds)
    yield _row(f"load, plain segments, {of}", got["clean"], got["strict"], 1 / 1.9)
    yield _row(f"load, plain, one torn line in a million, {of}", got["torn"], got["strict"], 0.4)
    memory = interleaved({"mb": _stage("peak_mb", torn)}, 1)["mb"]
    yield Row(f"peak memory of that load, {of}", memory.median, LIMIT_MB, "1 GB", "MB", 1)


def _proven(book: Path, of: str, rounds: int) -> Iterator[Row]:
    names = ("load", "strict", "compact")
    got = interleaved({name: _stage(name, book) for name in names}, rounds)
    yield _row(f"load, archives proven by manifest, {of}", got["load"], got["strict"], 1 / 1.3)
    name = f"compaction to Parquet, {of}"
    yield Row.beside(name, got["compact"], got["load"], "load of the same", "s", 1 / 1.5)


def _stage(name: str, book: Path) -> Callable[[], float]:
    return stage(f"loads.{name}", 0, book=str(book))


def _row(name: str, ours: Figure, strict: Figure, target: float) -> Row:
    return Row.beside(name, ours, strict, "strict read_json by hand", "s", round(target, 2))
