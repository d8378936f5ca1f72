"""Short words for what the core tests do to a book."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tallybook import Book
from tallybook.clock import to_text
from tallybook.job import Job
from tallybook.layout import Layout
from tallybook.log import reader
from tallybook.outcome import Outcome


def outcome(book: Book, job: Job, settle: str = "done", **fields: Any) -> Outcome:
    """What a worker would report of ``job`` now."""
    return Outcome(
        job_id=job.job_id,
        topic=job.topic,
        worker=job.locked_by or "",
        lease_token=job.lease_token,
        settle=settle,
        started_at=to_text(book.moment().now),
        duration_ms=1.5,
        correlation_id=job.correlation_id,
        **fields,
    )


def claim(book: Book, worker: str = "w1", lease_s: float = 60) -> Job:
    """The next due job; there must be one."""
    job = book.claim(worker, lease_s=lease_s)
    assert job is not None
    return job


def job_of(book: Book, job_id: str) -> Job:
    """The job as it stands; it must exist."""
    job = book.job(job_id)
    assert job is not None
    return job


def segments(book: Book | Path) -> list[Path]:
    """The segment files of a book, in the order of history."""
    layout = Layout(book) if isinstance(book, Path) else book.layout
    return [segment.path for segment in reader.segments(layout)]


def events(book: Book | Path) -> list[dict[str, Any]]:
    """Every line of the log as it stands in the files."""
    lines = [line for path in segments(book) for line in path.read_bytes().splitlines()]
    return [json.loads(line) for line in lines]


def names(book: Book | Path) -> list[str]:
    """The names of all events but those of the log itself."""
    return [e["event"] for e in events(book) if not e["event"].startswith("log.")]
