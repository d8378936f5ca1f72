"""Reconciling two tables of ten columns, beside the query that one would write by hand and beside
peers. Ours tells statuses, duplicates, null keys, bad cells and every changed cell.

diffly is in the group ``peers``; Polars is ours too; what does not go with them is run by uv in an
environment of its own, and left out where that cannot be made.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.benchmarks import reconcile_peers, reconciles
from tests.benchmarks.measuring import WORKSHOP, Row, interleaved, stage

QUICK, FULL, LARGEST = 1_000_000, 10_000_000, 100_000_000
BY_HAND, LIMIT_MB = 0.77, 2000.0
HERE = {"diffly": "diffly", "Polars full join": "polars_join"}
TARGETS = {"diffly": 2.5, "datacompy": 4.0}
Pair = tuple[Path, Path]


def measure(full: bool) -> Iterator[Row]:
    """Rows for 1 million rows a side as CSV; with ``full`` all peers, 10 million as CSV and as
    Parquet, and the memory of 100 million."""
    yield from _at("csv", QUICK, 3, [*HERE, *(reconcile_peers.ALL if full else ("datacompy",))])
    if full:
        yield from _at("csv", FULL, 3, [*HERE])
        yield from _at("parquet", FULL, 3, [*HERE, *reconcile_peers.READ_PARQUET])
        yield from _memory(LARGEST)


def _at(kind: str, rows: int, rounds: int, peers: list[str]) -> Iterator[Row]:
    folder = _folder()
    try:
        pair = reconciles.make(folder, kind, rows)
        of = f"{rows // 1_000_000} million rows a side, {kind}"
        taken = [peer for peer in peers if peer in HERE or reconcile_peers.is_there(peer)]
        slow = [peer for peer in taken if peer in reconcile_peers.SLOW]
        quick = {peer: _peer(peer, pair) for peer in taken if peer not in slow}
        own = {name: _stage(name, pair) for name in ("ours", "by_hand")}
        got = interleaved(own | quick, rounds)
        got |= interleaved({peer: _peer(peer, pair) for peer in slow}, 1)
        yield Row.beside(f"reconcile, {of}", got["ours"], got["by_hand"],
                         "DuckDB by hand, full join", "s", BY_HAND)  # fmt: skip
        for peer in taken:
            yield Row.beside(f"reconcile, {of}", got["ours"], got[peer], peer, "s",
                             TARGETS.get(peer, 1.0))  # fmt: skip
    finally:
        shutil.rmtree(folder)


def _memory(rows: int) -> Iterator[Row]:
    folder = _folder()
    try:
        pair = reconciles.make(folder, "parquet", rows)
        taken = interleaved({"mb": _stage("ours_mb", pair)}, 1)["mb"]
        told = f"peak memory of reconcile, {rows // 1_000_000} million rows a side, parquet"
        yield Row(told, taken.median, LIMIT_MB, "2 GB", "MB", 1)
    finally:
        shutil.rmtree(folder)


def _folder() -> Path:
    WORKSHOP.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(dir=WORKSHOP))


def _peer(name: str, pair: Pair) -> Callable[[], float]:
    if name in HERE:
        return _stage(HERE[name], pair)
    left, right = map(str, map(Path.absolute, pair))
    return stage("reconcile_peers.seconds", 0, left=left, right=right, peer=name)


def _stage(name: str, pair: Pair) -> Callable[[], float]:
    left, right = map(str, map(Path.absolute, pair))
    return stage(f"reconciles.{name}", 0, left=left, right=right)
