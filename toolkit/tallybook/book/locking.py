"""What the log says of locks: they come with a lease and go with it, in whatever way it ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tallybook.book.store import Store
from tallybook.clock import Moment
from tallybook.event import Event
from tallybook.job import Job, Status
from tallybook.settings import Settings

_LEASED = "job.leased"
_OF_LEASES = frozenset(
    f"job.{name}"
    for name in (
        "leased",
        "done",
        "retry_scheduled",
        "dead",
        "snoozed",
        "lease_expired",
        "released",
        "cancelled",
    )
)


def told(
    store: Store, moment: Moment, settings: Settings, events: Iterable[Event]
) -> Iterator[Event]:
    """``events`` as they come, with ``lock.acquired`` behind each lease that begins for a job with
    a resource, and ``lock.released`` behind each that ends. Whoever takes them applies each before
    the next: it is of the state before it."""
    limited = settings.limited
    for event in events:
        job = store.job(event["job_id"]) if event.name in _OF_LEASES else None
        if job is None or not (job.resource or limited):
            yield event
            continue
        if job.status == Status.LEASED and job.topic in limited:
            store.has_news = True  # a job that waited for its topic's limit may be claimed
        of_lock = _of_lock(store, moment, job, event) if job.resource else None
        yield event
        if of_lock:
            yield of_lock


def _of_lock(store: Store, moment: Moment, job: Job, event: Event) -> Event | None:
    if event.name == _LEASED:
        return _acquired(job, event)
    return _released(store, moment, job, event) if job.status == Status.LEASED else None


def _acquired(job: Job, leased: Event) -> Event:
    held = {"worker": leased["worker"], "lease_token": leased["lease_token"]}
    return Event("lock.acquired", job.named() | held | {"resource": job.resource})


def _released(store: Store, moment: Moment, job: Job, event: Event) -> Event | None:
    lock = store.lock(job.resource or "")
    if lock is None or lock.job_id != job.job_id:
        return None
    ended = {
        "worker": lock.worker,
        "lease_token": lock.lease_token,
        "resource": lock.resource,
        "duration_ms": round(lock.held_ms(moment), 3),
        "reason": event.get("reason") or event.name.removeprefix("job."),
    }
    return Event("lock.released", job.named() | ended)
