"""The questions of the warehouse beside the same ones written by hand in DuckDB (by_hand.sql).

Both are asked of one open warehouse, in turn, each answer as a Polars frame. The hand-written ones
know this log: no window, no job that is cancelled, no clock that is set. ``lease_states`` also says
which leases ran twice at once, so two stand beside it.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.benchmarks.logs import write_book
from tests.benchmarks.measuring import WORKSHOP, Figure, Row

from tallybook import ops
from tallybook.ops import Span, Warehouse, questions
from tallybook.statements import load

TARGET = 0.83
BY_HAND = load("tests.benchmarks", "by_hand.sql")
MINUTES = Span(every="1m")

QUESTIONS: dict[str, Callable[[Warehouse], object]] = {
    "throughput": lambda warehouse: ops.throughput(warehouse, MINUTES),
    "latency": lambda warehouse: ops.latency(warehouse, by="topic"),
    "depth": lambda warehouse: questions.depth(warehouse, MINUTES),
    "lease_states": ops.lease_states,
    "double_runs": ops.double_runs,
    "cache_as_of": ops.cache_as_of,
}
BESIDE = {name: (name,) for name in QUESTIONS} | {"lease_states": ("lease_states", "double_runs")}


def measure(full: bool) -> Iterator[Row]:
    """A row a question, of a log of 1 million events; of 20 million with ``full``."""
    events, rounds = (20_000_000, 5) if full else (1_000_000, 3)
    WORKSHOP.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=WORKSHOP))
    try:
        write_book(folder / "book", events)
        with ops.open(folder / "book", out=folder / "out") as warehouse:
            for name, ask in QUESTIONS.items():
                yield _row(warehouse, name, ask, f"{events // 1_000_000} million events", rounds)
    finally:
        shutil.rmtree(folder)


def _row(
    warehouse: Warehouse, name: str, ask: Callable[[Warehouse], object], of: str, rounds: int
) -> Row:
    ours, by_hand = [], []
    for _ in range(rounds):
        ours.append(_seconds(lambda: ask(warehouse)))
        by_hand.append(
            sum(_seconds(lambda one=one: warehouse.sql(BY_HAND[one]).pl()) for one in BESIDE[name])
        )
    told = f"question {name}, {of}"
    return Row.beside(told, Figure.of(ours), Figure.of(by_hand), "DuckDB by hand", "s", TARGET)


def _seconds(do: Callable[[], object]) -> float:
    start = time.perf_counter()
    do()
    return time.perf_counter() - start
