"""Rolling metrics: a CSV row an interval and worker, and the latest of all in one JSON file.

``metrics/YYYY-MM-DD.csv`` grows by whole rows; ``metrics/latest.json`` is replaced by rename and
also carries the high-water mark of the log. docs/metrics.md explains each column.
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import math
import os
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tallybook.book import Book
from tallybook.book.wal import wal_bytes
from tallybook.clock import Moment, from_text
from tallybook.job import Job, Status
from tallybook.layout import FILE_MODE, Layout
from tallybook.outcome import Outcome

_COUNTS = ("done_count", "retried_count", "dead_count", "rescued_count",
           "lease_timeout_count", "refused_count")  # fmt: skip
_TIMES = ("p50_ms", "p95_ms", "p99_ms", "mean_ms")
COLUMNS = (
    "interval_started_at", "interval_ended_at", "node_id", "worker",
    "pending", "leased", "done", "dead", "cancelled", "oldest_pending_s",
    "enqueued", *_COUNTS, "in_process",
    *(f"wait_{name}" for name in _TIMES), *(f"run_{name}" for name in _TIMES),
    "cache_hits", "cache_misses", "book_bytes", "wal_bytes",
)  # fmt: skip


_ENDS = {
    "job.done": "done",
    "job.retry_scheduled": "retried",
    "job.dead": "dead",
    "job.released": "released",
}


class Counters:
    """What one worker did since its last row; threads add to it."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._ends = dict.fromkeys(_ENDS, 0)
        self._due = ("", datetime.min.replace(tzinfo=UTC))
        self._clear()

    def settled(self, job: Job, outcome: Outcome, event: str) -> None:
        """A run ended with ``event``; its wait began when the job was due."""
        due_at = job.next_attempt_at or job.created_at
        with self._mutex:
            if due_at != self._due[0]:  # jobs of one batch were due at once
                self._due = (due_at, from_text(due_at))
            waited = from_text(outcome.started_at) - self._due[1]
            self._add(_COUNT_OF.get(event))
            if event in _ENDS:
                self._ends[event] += 1
            self._waits.append(waited.total_seconds() * 1000)
            self._runs.append(outcome.duration_ms)

    def released(self, number: int) -> None:
        """So many jobs were handed back."""
        with self._mutex:
            self._ends["job.released"] += number

    @property
    def told(self) -> str:
        """What became of all jobs since the start, in words."""
        with self._mutex:
            return ", ".join(f"{self._ends[name]:,} {word}" for name, word in _ENDS.items())

    def add(self, name: str, number: int = 1) -> None:
        """Count ``number`` more of ``name``, a column."""
        with self._mutex:
            self._counts[name] += number

    def cache_read(self, *, hit: bool) -> None:
        """A read of the cache found its key, or did not."""
        self.add("cache_hits" if hit else "cache_misses")

    def take(self) -> dict[str, Any]:
        """The columns of this interval; begins the next."""
        with self._mutex:
            row: dict[str, Any] = dict(self._counts)
            row |= _times("wait", self._waits) | _times("run", self._runs)
            self._clear()
        return row

    def _add(self, name: str | None) -> None:
        if name:
            self._counts[name] += 1

    def _clear(self) -> None:
        self._counts = dict.fromkeys((*_COUNTS, "cache_hits", "cache_misses"), 0)
        self._waits: list[float] = []
        self._runs: list[float] = []


_COUNT_OF = {
    "job.done": "done_count",
    "job.retry_scheduled": "retried_count",
    "job.dead": "dead_count",
    "job.settle_refused": "refused_count",
}


class Recorder:
    """Writes the rows of one worker into the metrics of its book. ``since``: begin of the next."""

    def __init__(self, book: Book, worker: str, counters: Counters) -> None:
        self._book = book
        self._worker = worker
        self._counters = counters
        self.since = book.moment()
        self._ordinal = book.position().ordinal

    def record(self, in_process: int) -> None:
        """Close the interval: append its row, renew latest.json."""
        now = self._book.moment()
        ordinal = self._book.position().ordinal
        row = self._row(now, in_process)
        _append_row(self._book.layout, now, row)
        _renew_latest(self._book, now, self._worker, row)
        self.since, self._ordinal = now, ordinal

    def _row(self, now: Moment, in_process: int) -> dict[str, Any]:
        counts = self._book.counts().values()
        depth = {str(status): sum(c.get(status, 0) for c in counts) for status in Status}
        oldest = self._book.oldest_pending_at()
        waiting = (now.now - from_text(oldest)).total_seconds() if oldest else None
        return {
            "interval_started_at": self.since.wall(),
            "interval_ended_at": now.wall(),
            "node_id": self._book.node.node_id,
            "worker": self._worker,
            **depth,
            "oldest_pending_s": None if waiting is None else round(waiting, 3),
            "enqueued": self._book.enqueued_since(self._ordinal),
            **self._counters.take(),
            "in_process": in_process,
            "book_bytes": _book_bytes(self._book.layout),
            "wal_bytes": wal_bytes(self._book.layout),
        }


def percentile(ordered: Sequence[float], share: float) -> float:
    """The ``share`` percentile of ascending numbers by linear interpolation (Hyndman-Fan 7)."""
    place = (len(ordered) - 1) * share
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _times(name: str, values: list[float]) -> dict[str, float | None]:
    if not values:
        return {f"{name}_{column}": None for column in _TIMES}
    ordered = sorted(values)
    figures = [percentile(ordered, share) for share in (0.5, 0.95, 0.99)]
    figures.append(sum(ordered) / len(ordered))
    return {f"{name}_{c}": round(f, 3) for c, f in zip(_TIMES, figures, strict=True)}


def _append_row(layout: Layout, now: Moment, row: Mapping[str, Any]) -> None:
    path = layout.metrics / f"{now.wall()[:10]}.csv"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, FILE_MODE)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        if os.fstat(fd).st_size == 0:
            writer.writeheader()
        writer.writerow(row)
        os.write(fd, text.getvalue().encode())
    finally:
        os.close(fd)


def _renew_latest(book: Book, now: Moment, worker: str, row: Mapping[str, Any]) -> None:
    """latest.json, whole by rename: the last row of each worker and the mark of the log."""
    position = book.position()
    path = book.layout.latest
    last = _last_rows(path) | {worker: dict(row)}
    latest = {
        "written_at": now.wall(),
        "node_id": book.node.node_id,
        "writer": position.writer,
        "seq": position.seq,
        "hash": position.hash.hex(),
        "last": last,
    }
    aside = path.with_name(f".{path.name}.{worker}")
    aside.write_text(json.dumps(latest, indent=1) + "\n", "utf-8")
    aside.chmod(FILE_MODE)
    aside.replace(path)


def _last_rows(path: Path) -> dict[str, Any]:
    try:
        last = json.loads(path.read_bytes())["last"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return {}
    return last if isinstance(last, dict) else {}


def _book_bytes(layout: Layout) -> int:
    total = 0
    for folder, _, names in os.walk(layout.root):
        for name in names:
            try:
                total += (Path(folder) / name).stat().st_size
            except FileNotFoundError:
                continue
    return total
