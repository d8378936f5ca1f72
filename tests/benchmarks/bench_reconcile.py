"""Reconciling two tables of ten columns, beside the query that one would write by hand and beside
peers. Ours tells statuses, duplicates, null keys, bad cells and every changed cell.

diffly is in the group ``peers``. datacompy does not go with Polars 2: it is measured where
DATACOMPY_PYTHON names an interpreter that has it. csv-diff installs a package ``tests`` of its own,
which hides ours.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.benchmarks import reconciles
from tests.benchmarks.measuring import WORKSHOP, Row, interleaved, stage

QUICK, FULL, LARGEST = 1_000_000, 10_000_000, 100_000_000
BY_HAND, LIMIT_MB = 0.77, 2000.0
PEERS = {"diffly": 2.5, "datacompy": 4.0}
Pair = tuple[Path, Path]


def measure(full: bool) -> Iterator[Row]:
    """Rows for 1 million rows a side as CSV; with ``full`` 10 million as Parquet, and 100."""
    yield from _at("csv", QUICK, 3, ["diffly", "datacompy"])
    if full:
        yield from _at("csv", FULL, 3, [])
        yield from _at("parquet", FULL, 3, ["diffly", "datacompy"])
        yield from _memory(LARGEST)


def _at(kind: str, rows: int, rounds: int, peers: list[str]) -> Iterator[Row]:
    folder = _folder()
    try:
        pair = reconciles.make(folder, kind, rows)
        of = f"{rows // 1_000_000} million rows a side, {kind}"
        peers = [peer for peer in peers if peer != "datacompy" or _datacompy()]
        got = interleaved({name: _stage(name, pair) for name in ("ours", "by_hand")}, rounds)
        yield Row.beside(f"reconcile, {of}", got["ours"], got["by_hand"],
                         "DuckDB by hand, full join", "s", BY_HAND)  # fmt: skip
        for peer in peers:
            beside = interleaved({peer: _stage(peer, pair)}, 1)[peer]
            yield Row.beside(f"reconcile, {of}", got["ours"], beside, peer, "s",
                             PEERS.get(peer, 1.0))  # fmt: skip
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


def _datacompy() -> str:
    return os.environ.get("DATACOMPY_PYTHON", "")


def _stage(name: str, pair: Pair) -> Callable[[], float]:
    left, right = map(str, map(Path.absolute, pair))
    given = {"python": _datacompy()} if name == "datacompy" else {}
    return stage(f"reconciles.{name}", 0, left=left, right=right, **given)
