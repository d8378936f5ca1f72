"""One run of a handler: what it is given, and what came of it."""

from __future__ import annotations

import asyncio
import inspect
import math
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from tallybook import payload as payloads
from tallybook.book import Book
from tallybook.book.caching import Write
from tallybook.clock import to_text
from tallybook.errors import BadInput, NotReached, Permanent, Retry, Snooze
from tallybook.job import Job
from tallybook.outcome import Outcome
from tallybook.worker.context import CacheView, Context, fit_facts
from tallybook.worker.handlers import Registered
from tallybook.worker.metrics import Counters
from tallybook.worker.typed import typed

_LOOK_AT_LEASE_S = 0.1
_LONGEST_DELAY_S = 366 * 86400
_PAYLOAD_LOST = (
    "the settings of its topic keep the payload out of the log, and state.db, which had it, was "
    "lost; enqueue the job again"
)


def run(
    handler: Registered,
    job: Job,
    book: Book,
    counters: Counters,
    is_held: Callable[[], bool] = lambda: True,
    extended: Callable[[int], None] = lambda _: None,
    started_at: str | None = None,
) -> tuple[Outcome, Sequence[Write]]:
    """Run a handler on a leased job; returns how it ended and the cache writes it asked for.

    ``is_held`` says whether the lease is still the worker's; a coroutine is cancelled when it is
    not. ``extended`` is told the boot time (µs) until which the handler has moved its lease. The
    run begins at ``started_at`` (RFC 3339), else now.
    """
    cache = CacheView(book, counters, job)
    context = Context(job, book, cache, is_held, extended)
    started_at, began = started_at or book.moment().wall(), time.perf_counter()
    told = _told(handler, job, context)
    duration_ms = round((time.perf_counter() - began) * 1000, 3)
    outcome = Outcome(
        job_id=job.job_id,
        topic=job.topic,
        worker=job.locked_by or "",
        lease_token=job.lease_token,
        started_at=started_at,
        duration_ms=duration_ms,
        correlation_id=job.correlation_id,
        **(context.notes | told),
    )
    return outcome, cache.writes


def _told(handler: Registered, job: Job, context: Context) -> dict[str, Any]:
    """What came of calling the handler, as fields of an outcome."""
    try:
        if job.payload_is_lost:
            raise Permanent(_PAYLOAD_LOST, error_type="PayloadLost")
        result = _call(handler, typed(job, handler.payload), context)
        if result is not None:
            payloads.checked(result)
    except Snooze as snooze:
        return _snoozed(snooze)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and _is_main_thread():
            raise  # Ctrl-C; in any other thread it is the handler's own doing
        return _failure(error)
    return {"settle": "done", "result": result}


def _call(handler: Registered, job: Job, context: Context) -> Any:
    arguments = (job, context) if handler.takes_context else (job,)
    answer = handler.function(*arguments)
    if answer is None or not inspect.isawaitable(answer):
        return answer
    return asyncio.run(_awaited(answer, context))


async def _awaited(answer: Awaitable[Any], context: Context) -> Any:
    """What a coroutine returns; it is cancelled when the lease is lost."""
    task = asyncio.ensure_future(answer)
    while not task.done():
        await asyncio.wait([task], timeout=_LOOK_AT_LEASE_S)
        if context.cancelled:
            task.cancel("the lease is over")
    return task.result()


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _snoozed(snooze: Snooze) -> dict[str, Any]:
    if snooze.until is not None:
        return {"settle": "snooze", "until": to_text(snooze.until)}
    after_s = _seconds(snooze.for_s)
    if after_s is None:
        return _failure(BadInput(f"Snooze({snooze.for_s!r}): give it a number of seconds"))
    return {"settle": "snooze", "after_s": after_s}


def _failure(error: BaseException) -> dict[str, Any]:
    told: dict[str, Any] = {
        "settle": "dead" if isinstance(error, Permanent | BadInput) else "retry",
        "error_type": type(error).__name__,
        "error": payloads.clean(_words(error)),
        "traceback": None if isinstance(error, Retry) else payloads.clean(_traceback(error)),
    }
    if isinstance(error, Retry):
        counted = not isinstance(error, NotReached)
        told |= {"after_s": _seconds(error.after_s), "counted": counted}
    if isinstance(error, Retry | Permanent):
        told["error_type"] = payloads.clean(str(error.error_type))
        told |= fit_facts(error.http_status, error.endpoint, error.replayed)
    return told


def _words(error: BaseException) -> str:
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001 - its own __str__ fails
        return type(error).__name__


def _seconds(value: Any) -> float | None:
    """A delay that a handler gave, at most a year; None where it is no number."""
    if not isinstance(value, int | float) or value != value:
        return None
    return float(min(max(value, 0), _LONGEST_DELAY_S)) if value != math.inf else None


def _traceback(error: BaseException) -> str:
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
