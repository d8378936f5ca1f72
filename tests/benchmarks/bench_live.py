"""Real workers: how soon one wakes, what waiting costs, how soon the job of a dead one runs on."""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.measuring import Row, interleaved, stage


def measure(full: bool) -> Iterator[Row]:
    """Rows beside what is allowed."""
    times = 50 if full else 15
    rounds = 5 if full else 2
    wake = interleaved({"ours": stage("live.wake_ms", times)}, rounds)["ours"]
    yield Row("wake-up, median; full, log and metrics on", wake.median, 1, "allowed", "ms", 1,
              (wake.lowest, wake.highest))  # fmt: skip
    idle = interleaved({"ours": stage("live.idle_percent", 5)}, rounds)["ours"]
    yield Row("CPU of a worker that waits, lease 60 s; metrics on", idle.median, 0.3, "allowed",
              "%", 1, (idle.lowest, idle.highest))  # fmt: skip
    restart = interleaved({"ours": stage("live.restart_ms", 1)}, 5)["ours"]
    yield Row("kill -9 in mid-job until it starts again elsewhere", restart.median, 100, "allowed",
              "ms", 1, (restart.lowest, restart.highest))  # fmt: skip
