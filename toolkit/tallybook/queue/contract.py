"""What every queue backend does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tallybook.clock import Moment
from tallybook.job import Job


@dataclass(frozen=True, slots=True)
class Selection:
    """Which jobs a person means; None: any. ``error`` is a part of the type or the words of the
    last error; ``older_than`` and ``newer_than`` are instants (RFC 3339) of the last change."""

    status: str | None = None
    topic: str | None = None
    error: str | None = None
    older_than: str | None = None
    newer_than: str | None = None


class Queue(Protocol):
    """Rows of jobs; changed by the fold alone."""

    def get(self, job_id: str) -> Job | None:
        """The job of that id."""
        ...

    def get_many(self, job_ids: Sequence[str]) -> list[Job]:
        """The jobs of those ids that are here."""
        ...

    def by_keys(self, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Job]:
        """{(topic, idempotency key): job} of the keys that jobs have: the open one, else the
        newest; without result, and of the payload but whether it is there."""
        ...

    def add(self, jobs: Iterable[Job]) -> None:
        """Keep new jobs."""
        ...

    def change(self, jobs: Iterable[tuple[Job, Job]]) -> None:
        """Keep the new state of jobs that are here, of each as it was read and as it is now."""
        ...

    def place(self, jobs: Iterable[Job]) -> None:
        """Keep the new places of jobs that are here, in their lines and before their resources."""
        ...

    def count(self, changes: Mapping[tuple[str, str], tuple[int, int]]) -> None:
        """So many more jobs (less, where negative) have a status: {(topic, status): (number,
        bytes of payloads)}."""
        ...

    def drop(self, job_id: str) -> None:
        """Forget a job."""
        ...

    def timed(self) -> Iterable[Job]:
        """The open jobs that are leased, wait for an instant of boot time, or expire at one."""
        ...

    def ready(
        self, moment: Moment, topics: Sequence[str], limit: int, rooms: Mapping[str, int] = ...
    ) -> list[Job]:
        """Pending jobs that may be claimed, by priority (higher first), due time, age; of a topic
        at most as many as ``rooms`` has for it, of a resource one."""
        ...

    def late(self, moment: Moment, limit: int) -> list[Job]:
        """Leased jobs whose lease has run out by boot time."""
        ...

    def expired(self, moment: Moment, limit: int) -> list[Job]:
        """Pending jobs whose time is over by boot time."""
        ...

    def by_age(self, after: int, limit: int) -> list[Job]:
        """Jobs from behind the ``after``-th event on, oldest first; without payload and result."""
        ...

    def held_by(self, worker: str) -> list[Job]:
        """The jobs that ``worker`` holds a lease of, run out or not."""
        ...

    def next_due_s(self, moment: Moment) -> float | None:
        """Seconds until the first of the pending jobs that wait is due; None where none waits."""
        ...

    def counts(self) -> dict[str, dict[str, int]]:
        """{topic: {status: number of jobs}}."""
        ...

    def oldest_pending_at(self) -> str | None:
        """When the oldest pending job was enqueued."""
        ...

    def enqueued_since(self, ordinal: int) -> int:
        """How many jobs came after the ``ordinal``-th event of the history."""
        ...

    def select(self, selection: Selection, limit: int, after: int = 0) -> list[Job]:
        """Jobs that came after the ``after``-th event, oldest first, at most ``limit``."""
        ...

    def to_cancel(self, worker: str) -> list[str]:
        """Ids of the jobs that ``worker`` holds and that are to be cancelled."""
        ...

    def put_topic(self, topic: str, status: str) -> None:
        """Keep whether a topic is active or paused."""
        ...

    def topics(self) -> dict[str, str]:
        """{topic: active or paused} of the topics that were ever paused."""
        ...
