"""Short words for what the fault tests do."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tallybook import Book
from tallybook.clock import to_text
from tallybook.job import Job
from tallybook.outcome import Outcome


def outcome_of(book: Book, job: Job, settle: str = "done", **fields: Any) -> Outcome:
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


def started(code: str, *words: str | Path, **options: Any) -> subprocess.Popen[str]:
    """A Python process that runs ``code``."""
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


def until(condition: Callable[[], Any], wait_s: float = 30) -> None:
    """Wait for ``condition``; fail after ``wait_s`` seconds."""
    deadline = time.monotonic() + wait_s
    while not condition():
        assert time.monotonic() < deadline, "this did not come true in time"
        time.sleep(0.01)
