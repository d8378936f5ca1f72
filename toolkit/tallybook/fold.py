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
        tables.put_job(transitions.enqueued(event, ordinal))
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
    tables.boot_id = event.boot_id


@dataclass
class MemoryTables:
    """Tables in memory: for folding a whole history, and for tests."""

    jobs: dict[str, Job] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)
    topics: dict[str, str] = field(default_factory=dict)
    boot_id: str = ""

    def job(self, job_id: str) -> Job | None:
        """The job of that id, if there is one."""
        return self.jobs.get(job_id)

    def put_job(self, job: Job) -> None:
        """Keep the new state of a job."""
        self.jobs[job.job_id] = job

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
