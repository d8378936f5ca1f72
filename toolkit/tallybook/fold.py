"""apply(tables, event): the specification of what an event does to the state.

Live changes, replay after a crash and a rebuild all call this one function; they differ only
in the tables that they bring: rows of SQLite, or dictionaries in memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from tallybook import entry as entries
from tallybook import transitions
from tallybook.entry import Entry
from tallybook.errors import FoldRefused
from tallybook.event import EVENTS, Event
from tallybook.job import Job, Status
from tallybook.order import Lock, Places, lock_of, moves_line

_TOPIC_STATUS = {"topic.paused": "paused", "topic.resumed": "active"}


class Tables(Protocol):
    """What a fold reads and writes; every column of it comes from events."""

    boot_id: str

    def job(self, job_id: str) -> Job | None:
        """The job of that id, if there is one."""
        ...

    def put_job(self, job: Job) -> None:
        """Keep the new state of a job."""
        ...

    def drop_job(self, job_id: str) -> None:
        """Forget a pruned job."""
        ...

    def timed_jobs(self) -> Iterable[Job]:
        """The open jobs that boot time is kept of: leased, waiting for an instant, or to expire."""
        ...

    def put_entry(self, entry: Entry) -> None:
        """Keep the new state of a cache entry."""
        ...

    def drop_entry(self, key: str) -> None:
        """Forget an invalidated entry."""
        ...

    def put_topic(self, topic: str, status: str) -> None:
        """Keep whether a topic is active or paused."""
        ...

    def touch(self, job: Job) -> None:
        """Look who is next of the ordering key and of the resource of a job that has changed: by
        ``tallybook.order``, and before anybody asks."""
        ...

    def put_lock(self, lock: Lock) -> None:
        """Keep who has a resource."""
        ...

    def drop_lock(self, resource: str, job_id: str) -> None:
        """Nobody has a resource any more that this job had."""
        ...

    def put_bucket(self, topic: str, full_us: int) -> None:
        """Keep when the bucket of a topic is full again, in µs of boot time."""
        ...

    def drop_buckets(self) -> None:
        """All buckets are full."""
        ...


def apply(tables: Tables, event: Event, ordinal: int) -> None:
    """Do to ``tables`` what ``event``, the ``ordinal``-th of the history, says.

    Raises FoldRefused where the event does not fit the state before it.
    """
    if event.name not in EVENTS:
        raise FoldRefused(f"seq {event.seq}: event {event.name!r} is not known to this version")
    try:
        _apply(tables, event, ordinal)
    except (KeyError, TypeError, ValueError) as error:
        raise FoldRefused(f"seq {event.seq}: {event.name} has a wrong field: {error}") from None


def _apply(tables: Tables, event: Event, ordinal: int) -> None:
    if event.name == "job.enqueued":
        job = transitions.enqueued(event, ordinal)
        tables.put_job(job)
        if job.waits_for:
            tables.touch(job)
    elif event.name in transitions.FOLDED:
        _apply_to_job(tables, event)
    elif event.name in ("cache.put", "cache.invalidated"):
        _apply_to_entry(tables, event)
    elif event.name in _TOPIC_STATUS:
        tables.put_topic(event["topic"], _TOPIC_STATUS[event.name])
    elif event.name == "log.opened":
        _apply_opened(tables, event)


def _apply_to_job(tables: Tables, event: Event) -> None:
    before = tables.job(event["job_id"])
    if before is None:
        raise FoldRefused(f"seq {event.seq}: {event.name} of job {event['job_id']}: no such job")
    job = transitions.after(before, event)
    if job is None:
        tables.drop_job(before.job_id)
    elif job is not before:
        tables.put_job(job)
    if before.ordering_key or before.resource:
        _apply_to_order(tables, before, job, event)
    if "bucket_full_us" in event.fields:
        tables.put_bucket(event["topic"], event["bucket_full_us"])


def _apply_to_order(tables: Tables, before: Job, job: Job | None, event: Event) -> None:
    """A lock comes with a lease and goes with it; ``lock.acquired`` and ``lock.released`` tell it
    to people, and change nothing."""
    if job and job.status == before.status:
        return
    if before.resource and job and job.status == Status.LEASED:
        tables.put_lock(lock_of(job, event))
    elif before.resource and before.status == Status.LEASED:
        tables.drop_lock(before.resource, before.job_id)
    tables.touch(job or before)


def _apply_to_entry(tables: Tables, event: Event) -> None:
    entry = entries.after(event)
    if entry is None:
        tables.drop_entry(event["key"])
    else:
        tables.put_entry(entry)


def _apply_opened(tables: Tables, event: Event) -> None:
    if tables.boot_id and tables.boot_id != event.boot_id:
        for job in list(tables.timed_jobs()):
            tables.put_job(transitions.rebooted(job, event))
            if job.resource:
                tables.touch(job)
        tables.drop_buckets()
    tables.boot_id = event.boot_id


@dataclass
class MemoryTables:
    """Tables in memory: for folding a whole history, and for tests."""

    jobs: dict[str, Job] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)
    topics: dict[str, str] = field(default_factory=dict)
    boot_id: str = ""
    locks: dict[str, Lock] = field(default_factory=dict)
    buckets: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._places = Places(self.jobs)

    def job(self, job_id: str) -> Job | None:
        """The job of that id, if there is one."""
        return self.jobs.get(job_id)

    def put_job(self, job: Job) -> None:
        """Keep the new state of a job."""
        self.jobs[job.job_id] = job
        if job.ordering_key or job.resource:
            self._places.put(job)

    def drop_job(self, job_id: str) -> None:
        """Forget a pruned job."""
        self.jobs.pop(job_id, None)

    def timed_jobs(self) -> Iterable[Job]:
        """The open jobs that boot time is kept of: leased, waiting for an instant, or to expire."""
        return [
            job
            for job in self.jobs.values()
            if job.status == Status.LEASED
            or (job.status == Status.PENDING and (job.due_boot_us or job.expire_boot_us))
        ]

    def put_entry(self, entry: Entry) -> None:
        """Keep the new state of a cache entry."""
        self.entries[entry.key] = entry

    def drop_entry(self, key: str) -> None:
        """Forget an invalidated entry."""
        self.entries.pop(key, None)

    def put_topic(self, topic: str, status: str) -> None:
        """Keep whether a topic is active or paused."""
        self.topics[topic] = status

    def touch(self, job: Job) -> None:
        """Look who is next of the ordering key and of the resource of a job that has changed."""
        resources = [job.resource]
        if moves_line(job):
            for moved in self._places.moved_in_line((job.topic, job.ordering_key or "")):
                self.put_job(moved)
                resources.append(moved.resource)
        for resource in filter(None, dict.fromkeys(resources)):
            for moved in self._places.moved_of_resource(resource, resource in self.locks):
                self.put_job(moved)

    def put_lock(self, lock: Lock) -> None:
        """Keep who has a resource."""
        self.locks[lock.resource] = lock

    def drop_lock(self, resource: str, job_id: str) -> None:
        """Nobody has a resource any more that this job had."""
        lock = self.locks.get(resource)
        if lock and lock.job_id == job_id:
            del self.locks[resource]

    def put_bucket(self, topic: str, full_us: int) -> None:
        """Keep when the bucket of a topic is full again, in µs of boot time."""
        self.buckets[topic] = full_us

    def drop_buckets(self) -> None:
        """All buckets are full."""
        self.buckets.clear()
