"""One run of a handler: what it is given, and what came of it."""

from __future__ import annotations

import asyncio
import inspect
import logging
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tallybook import payload as payloads
from tallybook.book import Book
from tallybook.clock import to_text
from tallybook.entry import Entry, Put
from tallybook.errors import BadInput, NotReached, Permanent, Retry, Snooze
from tallybook.job import Job, Outcome
from tallybook.worker.handlers import Handler, takes_context
from tallybook.worker.metrics import Counters

_PAYLOAD_LOST = (
    "the settings of its topic keep the payload out of the log, and state.db, which had it, was "
    "lost; enqueue the job again"
)


class CacheView:
    """The cache as a handler sees it: reads at once, writes with the settle."""

    def __init__(self, book: Book, counters: Counters) -> None:
        self._book = book
        self._counters = counters
        self.puts: list[Put] = []

    def get(self, key: str) -> Entry | None:
        """The entry of ``key`` as it stands now."""
        entry = self._book.entry(key)
        self._counters.cache_read(hit=entry is not None)
        return entry

    def put(self, key: str, value: Any, **fields: Any) -> None:
        """Write ``value`` (JSON) when this job is done. ``fields`` are those of ``entry.Put``.

        Raises BadInput at once for what cannot be kept.
        """
        payloads.checked(value)
        payloads.checked_text("cache key", key)
        self.puts.append(Put(key, value, **fields))


@dataclass
class Context:
    """What a handler may use besides its job."""

    cache: CacheView
    log: logging.LoggerAdapter[logging.Logger]
    notes: dict[str, Any] = field(default_factory=dict)

    def note(
        self,
        *,
        http_status: int | None = None,
        endpoint: str | None = None,
        replayed: bool | None = None,
    ) -> None:
        """Facts of this run for its event: how the server answered, where, and whether it had
        known the key already."""
        given = {"http_status": http_status, "endpoint": endpoint, "replayed": replayed}
        self.notes |= {name: value for name, value in given.items() if value is not None}


def run(
    function: Handler, job: Job, book: Book, counters: Counters
) -> tuple[Outcome, Sequence[Put]]:
    """Run ``function`` on a leased job; returns how it ended and the cache writes it asked for."""
    cache = CacheView(book, counters)
    names = {"job_id": job.job_id, "correlation_id": job.correlation_id}
    context = Context(cache, logging.LoggerAdapter(logging.getLogger("tallybook.job"), names))
    started_at, began = to_text(book.moment().now), time.perf_counter()
    outcome = _outcome(function, job, context)
    duration_ms = round((time.perf_counter() - began) * 1000, 3)
    return replace(outcome, started_at=started_at, duration_ms=duration_ms), cache.puts


def _outcome(function: Handler, job: Job, context: Context) -> Outcome:
    base = Outcome(
        job_id=job.job_id,
        topic=job.topic,
        worker=job.locked_by or "",
        lease_token=job.lease_token,
        settle="done",
        started_at="",
        duration_ms=0,
        correlation_id=job.correlation_id,
    )
    try:
        if job.payload_is_lost:
            raise Permanent(_PAYLOAD_LOST, error_type="PayloadLost")
        result = _call(function, job, context)
        payloads.checked(result)
    except Snooze as snooze:
        return replace(base, settle="snooze", after_s=snooze.for_s, **context.notes)
    except Exception as error:  # noqa: BLE001 - whatever a handler raises becomes an event
        return replace(base, **(context.notes | _failure(error)))
    return replace(base, result=result, **context.notes)


def _call(function: Handler, job: Job, context: Context) -> Any:
    answer = function(job, context) if takes_context(function) else function(job)
    return asyncio.run(_awaited(answer)) if inspect.isawaitable(answer) else answer


async def _awaited(answer: Any) -> Any:
    return await answer


def _failure(error: Exception) -> dict[str, Any]:
    told: dict[str, Any] = {
        "settle": "dead" if isinstance(error, Permanent | BadInput) else "retry",
        "error_type": getattr(error, "error_type", type(error).__name__),
        "error": payloads.clean(str(error) or type(error).__name__),
        "traceback": None if isinstance(error, Retry) else payloads.clean(_traceback(error)),
    }
    if isinstance(error, Retry):
        told |= {"after_s": error.after_s, "counted": not isinstance(error, NotReached)}
    if isinstance(error, Retry | Permanent):
        facts = {"http_status": error.http_status, "endpoint": error.endpoint}
        told |= {name: value for name, value in facts.items() if value is not None}
        if error.replayed:
            told["replayed"] = True
    return told


def _traceback(error: Exception) -> str:
    """The traceback from the handler on, with files named from their package on, so that no
    home folder leaks."""
    told = traceback.TracebackException.from_exception(error)
    told.stack[:] = [frame for frame in told.stack if frame.filename != __file__]
    part: traceback.TracebackException | None = told
    while part:
        for frame in part.stack:
            frame.filename = _short(frame.filename)
        part = part.__cause__ or part.__context__
    return "".join(told.format())


def _short(filename: str) -> str:
    roots = sorted((root for root in sys.path if root), key=len, reverse=True)
    for root in roots:
        if Path(filename).is_relative_to(root):
            return Path(filename).relative_to(root).as_posix()
    return filename
