"""What follows from what is asked of a book: pure functions of the state and the moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from tallybook import steering
from tallybook.book.asking import Held, Receipt, Settled, Want
from tallybook.book.bounds import Depths
from tallybook.book.caching import Writing
from tallybook.book.latest import Latest
from tallybook.book.limits import Limits
from tallybook.book.store import Store
from tallybook.clock import Moment
from tallybook.errors import KeyConflict
from tallybook.event import Event
from tallybook.ids import new_job_ids
from tallybook.job import Job, Status
from tallybook.outcome import Outcome
from tallybook.settings import Settings

_MOST_EXPIRED = 1000
_SWITCHES = {"paused": "topic.paused", "active": "topic.resumed"}
_GIVEN_UP = (Status.DEAD, Status.CANCELLED)


def enqueue(
    store: Store, moment: Moment, jobs: Sequence[dict[str, Any]], settings: Settings,
    earlier: Iterable[Event] = (),
) -> list[Event]:  # fmt: skip
    """The events of an enqueue: new jobs, or the first ones with their keys. ``earlier`` are those
    that stand before it in the same change.

    Behind a job come the events of those that it supersedes. They withhold from the log what it
    is not to keep of their topic. Raises KeyConflict where a key belongs to a job with another
    payload, QueueFull where a topic would have more pending than it may.
    """
    keyed = [(job["topic"], job["idempotency_key"]) for job in jobs if job["idempotency_key"]]
    found = store.queue.by_keys(keyed) if keyed else {}
    known = {
        key: (first.job_id, first.payload_digest)
        for key, first in found.items()
        if first.holds_key(settings.topic(first.topic), moment) and not first.can_never_run
    }
    events = []
    for job, job_id in zip(jobs, new_job_ids(len(jobs)), strict=True):
        key = (job["topic"], job["idempotency_key"])
        event = _again(job, known[key]) if key in known else _new(job, job_id, moment)
        if key[1]:
            known.setdefault(key, (event["job_id"], job["payload_digest"]))
        events.append(event)
    if any("keep_latest" in job for job in jobs) or settings.is_bounded:
        events = _ordered(store, events, settings, earlier)
    return _withholding(events, settings)


def _ordered(
    store: Store, enqueued: list[Event], settings: Settings, earlier: Iterable[Event]
) -> list[Event]:
    """The events of an enqueue, each with those of the jobs that it supersedes behind it."""
    latest, depths = Latest(store), Depths(store, settings, earlier)
    events: list[Event] = []
    for place, event in enumerate(enqueued):
        is_new = event.name == "job.enqueued"
        told = [event, *(latest.superseded_by(event) if is_new else ())]
        depths.take(place, told)
        events += told
    return events


def receipts(events: Iterable[Event]) -> list[Receipt]:
    """What the events of an enqueue say to whoever asked for it."""
    told: list[Receipt] = []
    for event in events:
        if event.name == "job.cancelled":
            told[-1] = replace(told[-1], superseded=(*told[-1].superseded, event["job_id"]))
        else:
            told.append(Receipt(event["job_id"], event.name == "job.enqueued"))
    return told


def _withholding(events: list[Event], settings: Settings) -> list[Event]:
    if not settings.withholds:
        return events
    return [event.withholding(settings.keeping(event["topic"])) for event in events]


def _new(job: dict[str, Any], job_id: str, moment: Moment) -> Event:
    made = {"job_id": job_id} | job
    made["idempotency_key"] = job["idempotency_key"] or job_id
    if "delay_ms" in job:
        made["next_attempt_at"] = moment.wall(job["delay_ms"])
    if "expires_after_ms" in job:
        made["expires_at"] = moment.wall(job["expires_after_ms"])
    return Event("job.enqueued", made)


def _again(job: dict[str, Any], first: tuple[str, str]) -> Event:
    job_id, digest = first
    if digest and digest != job["payload_digest"]:
        raise KeyConflict(
            f"idempotency key {job['idempotency_key']!r} of topic {job['topic']} belongs to job "
            f"{job_id}, which has another payload; use another key"
        )
    told = ("topic", "correlation_id", "idempotency_key", "payload_digest", "enqueued_from")
    return Event("job.deduplicated", {"job_id": job_id} | {name: job.get(name) for name in told})


def claim(store: Store, moment: Moment, want: Want, settings: Settings) -> list[Event]:
    """The events of the next due jobs being leased, and of those before them that expired."""
    limits = Limits(store, moment, settings.limited, want.topics)
    over, wanted = _ready(store, moment, want, limits)
    ready = _alone(store.know(wanted))
    lease_ms = round(want.lease_s * 1000)
    until = moment.wall(lease_ms)
    leased = [job.lease(want.worker, lease_ms, until, limits.take(job.topic)) for job in ready]
    return [job.expire(settings.topic(job.topic)) for job in over] + leased


def _ready(store: Store, moment: Moment, want: Want, limits: Limits) -> tuple[list[Job], list[Job]]:
    """Due jobs: those that expired, and at most ``want.limit`` that did not."""
    seen = 0
    while True:
        ahead = 4 * seen
        rooms = limits.rooms(ahead)
        found = store.queue.ready(moment, want.topics, want.limit + ahead, rooms)
        over = [job for job in found if job.is_expired(moment)]
        if not over:
            return over, found
        left = limits.fitting([job for job in found if not job.is_expired(moment)])
        if len(left) >= want.limit or len(over) == seen or len(over) >= _MOST_EXPIRED:
            store.know(over)
            return over, left[: want.limit]
        seen = len(over)


def _alone(ready: list[Job]) -> list[Job]:
    """A job that was rescued before is claimed alone: it may be what kills workers."""
    for place, job in enumerate(ready):
        if job.rescue_count:
            return ready[: max(place, 1)]
    return ready


def settle(
    store: Store,
    moment: Moment,
    settled: Iterable[Settled],
    settings: Settings,
    dice: Callable[[], float],
) -> list[Event]:
    """The events of runs that ended: outcomes after their cache writes, or refusals.

    The writes come first: a power cut may tear a change, and a job may be done twice, but not be
    done without them.
    """
    ended: set[str] = set()
    settled = list(settled)
    store.know_all(one.outcome.job_id for one in settled)
    if len(settled) > 1:
        jobs = [store.job(one.outcome.job_id) for one in settled]
        store.know_locks([job.resource for job in jobs if job and job.resource])
    withholds = settings.withholds
    events: list[Event] = []
    writing = Writing(store.cache)
    for one in settled:
        if one.outcome.job_id in ended:
            events.append(one.outcome.refused("it was settled already, in this same change"))
            continue
        ended.add(one.outcome.job_id)
        made = _settle_one(store, moment, one.outcome, settings, dice())
        if withholds:
            made = _withholding(made, settings)
        if one.puts and made[-1].name == "job.done":
            events += writing.events(one.puts, one.outcome.job_id)
        events += made
    return events


def turn(
    store: Store,
    moment: Moment,
    settled: Sequence[Settled],
    want: Want | None,
    settings: Settings,
    dice: Callable[[], float],
) -> Iterable[Event]:
    """The events of ``settle`` and, where there is a ``want``, those of ``claim``: asked for once
    the others are applied, where those let jobs through."""
    ended = settle(store, moment, settled, settings, dice)
    if want is None:
        return ended
    if _lets_through(store, ended, settings):
        return chain(ended, _claim_later(store, moment, want, settings))
    return ended + claim(store, moment, want, settings)


def _claim_later(store: Store, moment: Moment, want: Want, settings: Settings) -> Iterator[Event]:
    yield from claim(store, moment, want, settings)


def _lets_through(store: Store, ended: Iterable[Event], settings: Settings) -> bool:
    """Whether jobs may be claimed after these events that may not before; else who claims need
    not wait until they are applied."""
    if settings.limited:
        return True
    jobs = (store.job(event["job_id"]) for event in ended if event.name.startswith("job."))
    return any(job and (job.ordering_key or job.resource) for job in jobs)


def _settle_one(
    store: Store, moment: Moment, outcome: Outcome, settings: Settings, dice: float
) -> list[Event]:
    job = store.job(outcome.job_id)
    if job is None:
        return [outcome.refused("the job was pruned")]
    return job.settle(outcome, settings.topic(outcome.topic), dice, moment)


def extend(
    store: Store, moment: Moment, leases: Iterable[Held], worker: str, lease_s: float
) -> list[Event]:
    """One event a lease: that of its extension, or of the refusal where it is over."""
    return [_extend_one(store, moment, held, worker, lease_s) for held in leases]


def _extend_one(store: Store, moment: Moment, held: Held, worker: str, lease_s: float) -> Event:
    job = store.job(held.job_id)
    ended = job.lease_ended(held.lease_token, moment) if job else "the job was pruned"
    if job and not ended:
        return job.extend(round(lease_s * 1000), held.started_at, moment)
    named = job.named() if job else {"job_id": held.job_id}
    late = {"worker": worker, "lease_token": held.lease_token, "settle": "extend"}
    return Event("job.settle_refused", named | late | {"reason": ended})


def steer(store: Store, rule: str, job_ids: Sequence[str], reason: str) -> list[Event]:
    """The events of requeueing, discarding or cancelling jobs; others are passed over."""
    jobs = store.know(store.queue.get_many(job_ids))
    if rule == "requeue":
        jobs = _with_free_keys(store, jobs)
    return [event for job in jobs for event in steering.RULES[rule](job, reason)]


def switch(store: Store, topic: str, status: str, reason: str) -> list[Event]:
    """The event of a topic being paused or active from now on; none where it is so already."""
    if store.queue.topics().get(topic, "active") == status:
        return []
    return [Event(_SWITCHES[status], {"topic": topic, "reason": reason})]


def _with_free_keys(store: Store, jobs: list[Job]) -> list[Job]:
    """Those whose idempotency key no other job has that is open or done; one of each key."""
    keyed = [((job.topic, job.idempotency_key), job) for job in jobs]
    held = store.queue.by_keys([key for key, _ in keyed])
    stands = {key: job.job_id for key, job in held.items() if job.status not in _GIVEN_UP}
    for key, job in keyed:
        stands.setdefault(key, job.job_id)
    return [job for key, job in keyed if stands[key] == job.job_id]


def release_by_hand(store: Store, held: Held, reason: str) -> list[Event]:
    """The event of a person taking a lease from its holder, also one that has run out."""
    job = store.job(held.job_id)
    if job is None or job.status != Status.LEASED or job.lease_token != held.lease_token:
        return []
    return [job.release(reason)]


def release(store: Store, moment: Moment, leases: Iterable[Held], reason: str) -> list[Event]:
    """The events of leases handed back; those that are over are passed over."""
    named = {(held.job_id, held.lease_token) for held in leases}
    jobs = [(store.job(job_id), token) for job_id, token in sorted(named)]
    return [
        job.release(reason) for job, token in jobs if job and not job.lease_ended(token, moment)
    ]
