"""How much dearer work becomes among many jobs: a million, in the quick form a tenth of that."""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.bench_start import ALLOWED_S, help_s
from tests.benchmarks.measuring import Row, interleaved, stage

MANY, QUICK = 1_000_000, 100_000


def measure(full: bool) -> Iterator[Row]:
    """Claims among many jobs beside a thousand; ``status`` of many beside ``--help``."""
    many, rounds = (MANY, 3) if full else (QUICK, 1)
    for status in ("pending", "done"):
        got = interleaved(
            {
                "many": stage("ours.among", many, "interval", status=status),
                "few": stage("ours.among", 1000, "interval", status=status),
            },
            rounds,
        )
        name = f"claim + settle, fused, among {many:,} {status}; interval, log on"
        yield Row.beside(name, got["many"], got["few"], "among 1,000", "job/s", 0.83)
    got = interleaved({"status": stage("live.status_s", many), "help": help_s}, rounds)
    allowed = got["help"].median + ALLOWED_S
    name = f"tallybook status, {many:,} jobs"
    yield Row(name, got["status"].median, allowed, "tallybook --help + 0.3 s", "s", 1)
