"""A cache folded from its log: 20 million events to a million keys, in the quick form a tenth."""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.measuring import WORKSHOP, Figure, Row, interleaved, stage
from tests.benchmarks.rebuilds import log_of

MANY, QUICK, EVENTS_A_KEY = 20_000_000, 2_000_000, 20
FOLD, CERTIFIED, MEMORY_GB = 1 / 1.3, 1 / 2, 2.0
BASELINE = "a DuckDB query by hand"


def measure(full: bool) -> Iterator[Row]:
    """Time of the fold, then with its certificate, beside the query that a person writes."""
    events = MANY if full else QUICK
    keys = events // EVENTS_A_KEY
    book = str(log_of(WORKSHOP, events, keys).resolve())
    names = ("folded", "certified", "by_hand")
    ran = {name: stage(f"rebuilds.{name}", events, book=book) for name in names}
    got = interleaved(ran, 5 if full else 3)
    said = f"{events:,} events to {keys:,} keys; archives and one open segment, cache.ndjson"
    for name, words, target in (
        ("folded", "cache fold", FOLD),
        ("certified", "cache fold with certificate", CERTIFIED),
    ):
        yield Row.beside(f"{words}, {said}", got[name], got["by_hand"], BASELINE, "s", target)
    peak = Figure.of([stage("rebuilds.certified", events, book=book, memory=True)()])
    yield Row(f"peak memory of that, {said}", peak.median, MEMORY_GB, "2 GB", "GB", 1)
