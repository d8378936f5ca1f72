"""What ordering keys, resources and limits cost where they are used, and that plain jobs do not
feel them where many are held."""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.measuring import Row, interleaved, stage

USED, FLAT = 1 / 1.3, 0.83
FEATURES = ("ordering_key", "resource", "limits")


def measure(full: bool) -> Iterator[Row]:
    """Rows beside claims of plain jobs."""
    size = 5 if full else 1
    for durability, limit, jobs in (("full", 1, 500 * size), ("interval", 100, 4000 * size)):
        got = interleaved(
            {
                name: stage("ordered.work", jobs, durability, limit=limit, feature=name)
                for name in ("none", *FEATURES)
            },
            5 if full else 3,
        )
        for name in FEATURES:
            row = f"claim + settle, {limit} at a time, {name} used; {durability}, log on"
            yield Row.beside(row, got[name], got["none"], "not used", "job/s", USED)
    many = 100_000 if full else 10_000
    got = interleaved(
        {
            name or "none": stage("ordered.among", many, "interval", feature=name)
            for name in ("", "ordering_key", "resource")
        },
        3,
    )
    for name in ("ordering_key", "resource"):
        row = f"plain claim + settle, {many:,} with {name} held, {many:,} behind one"
        yield Row.beside(row, got[name], got["none"], "none held", "job/s", FLAT)
