"""The queue on SQLite: rows of the table ``jobs``. The caller holds the transaction."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from operator import itemgetter
from typing import Any

import orjson

from tallybook.clock import Moment, from_text
from tallybook.job import Job
from tallybook.queue.claiming import NO_ROOMS, Claiming
from tallybook.queue.columns import additions, changes, statements_of_jobs
from tallybook.queue.contract import Selection
from tallybook.queue.ordering import Ordering

_SQL = statements_of_jobs()
_CHOSEN = {
    None: "where true",
    "leased": "indexed by jobs_leased where status = 'leased'",
    "dead": "indexed by jobs_dead where status = 'dead'",
    "cancelled": "indexed by jobs_cancelled where status = 'cancelled'",
    "done": "where status = 'done'",
    "waiting": "indexed by jobs_waiting"
    " where status = 'pending' and (waits_for is not null or due_boot_us > 0 or due_at > '')",
    "ready": "indexed by jobs_ready where status = 'pending' and waits_for is null"
    " and due_boot_us = 0 and due_at = '' and topic = :of_topic and priority = :of_priority",
}  # each status by its index where it has one; pending is waiting, and ready for each priority
_SELECT = {name: _SQL["select"].replace("{chosen}", words) for name, words in _CHOSEN.items()}
SCHEMA = _SQL["schema"]
_ORDINAL = Job._fields.index("ordinal")


class SqliteQueue:
    """The jobs of one book, over a connection that the book owns. ``ordering`` has their lines,
    locks and buckets."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._claiming = Claiming(connection, _SQL)
        self.ordering = Ordering(connection, _SQL)

    def get(self, job_id: str) -> Job | None:
        """The job of that id."""
        return self._one("get", (job_id,))

    def get_many(self, job_ids: Sequence[str]) -> list[Job]:
        """The jobs of those ids that are here."""
        return self._many(_SQL["get_many"], (orjson.dumps(job_ids).decode(),))

    def by_keys(self, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Job]:
        """{(topic, idempotency key): job} of the keys that jobs have: the open one, else the
        newest; without result, and of the payload but whether it is there."""
        found = self._many(_SQL["by_keys"], (orjson.dumps(keys).decode(),))
        return {(job.topic, job.idempotency_key): job for job in found}

    def add(self, jobs: Iterable[Job]) -> None:
        """Keep new jobs."""
        for text, rows in additions(jobs):
            self._connection.executemany(text, rows)

    def change(self, jobs: Iterable[tuple[Job, Job]]) -> None:
        """Keep the new state of jobs that are here, of each as it was read and as it is now."""
        for text, rows in changes(jobs):
            self._connection.executemany(text, rows)

    def place(self, jobs: Iterable[Job]) -> None:
        """Keep the new places of jobs that are here, in their lines and before their resources."""
        rows = ((job.line, job.waits_for, job.ordinal) for job in jobs)
        self._connection.executemany(_SQL["place"], rows)

    def count(self, changes: Mapping[tuple[str, str], tuple[int, int]]) -> None:
        """So many more jobs (less, where negative) have a status: {(topic, status): (number,
        bytes of payloads)}."""
        rows = [(*key, *more) for key, more in changes.items() if any(more)]
        self._connection.executemany(_SQL["count"], rows)

    def drop(self, job_id: str) -> None:
        """Forget a job."""
        self._connection.execute(_SQL["drop"], (job_id,))

    def timed(self) -> Iterable[Job]:
        """The open jobs that are leased, wait for an instant of boot time, or expire at one."""
        return self._many(_SQL["timed"], ())

    def ready(
        self,
        moment: Moment,
        topics: Sequence[str],
        limit: int,
        rooms: Mapping[str, int] = NO_ROOMS,
    ) -> list[Job]:
        """Pending jobs that may be claimed, by priority (higher first), due time, age; of a topic
        at most as many as ``rooms`` has for it, of a resource one."""
        return self._claiming.ready(moment, topics, limit, rooms)

    def late(self, moment: Moment, limit: int) -> list[Job]:
        """Leased jobs whose lease has run out by boot time."""
        return self._many(_SQL["late"], (moment.boot_us, limit))

    def expired(self, moment: Moment, limit: int) -> list[Job]:
        """Pending jobs whose time is over by boot time."""
        return self._many(_SQL["expired"], (moment.boot_us, limit))

    def by_age(self, after: int, limit: int) -> list[Job]:
        """Jobs from behind the ``after``-th event on, oldest first; without payload and result."""
        return self._many(_SQL["by_age"], (after, limit))

    def held_by(self, worker: str) -> list[Job]:
        """The jobs that ``worker`` holds a lease of, run out or not."""
        return self._many(_SQL["held_by"], (worker,))

    def next_due_s(self, moment: Moment) -> float | None:
        """Seconds until the first of the pending jobs that wait is due; None where none waits."""
        asked = {"boot_us": moment.boot_us, "now": moment.wall()}
        boot_us, at = self._connection.execute(_SQL["next_due"], asked).fetchone()
        waits = [(boot_us - moment.boot_us) / 1e6] if boot_us is not None else []
        if at is not None:
            waits.append((from_text(at) - moment.now).total_seconds())
        return min(waits, default=None)

    def counts(self) -> dict[str, dict[str, int]]:
        """{topic: {status: number of jobs}}."""
        found: dict[str, dict[str, int]] = {}
        for topic, status, number in self._connection.execute(_SQL["counts"]):
            found.setdefault(topic, {})[status] = number
        return found

    def oldest_pending_at(self) -> str | None:
        """When the oldest pending job was enqueued."""
        oldest = self.select(Selection("pending"), 1)
        return oldest[0].created_at if oldest else None

    def enqueued_since(self, ordinal: int) -> int:
        """How many jobs came after the ``ordinal``-th event of the history."""
        row = self._connection.execute(_SQL["enqueued_since"], (ordinal,)).fetchone()
        return int(row[0])

    def select(self, selection: Selection, limit: int, after: int = 0) -> list[Job]:
        """Jobs that came after the ``after``-th event, oldest first, at most ``limit``."""
        asked = asdict(selection) | {"limit": limit, "after": after}
        status = asked.pop("status")
        if status == "pending":
            return self._pending(asked, limit)
        return self._many(_SELECT[status], asked)

    def _pending(self, asked: dict[str, Any], limit: int) -> list[Job]:
        """The jobs that wait, and those of each topic and priority that are ready, by age."""
        parts = [self._connection.execute(_SELECT["waiting"], asked)]
        for topic in [asked["topic"]] if asked["topic"] else self._claiming.pending_topics():
            for priority in self._claiming.priorities("ready", topic):
                group = asked | {"of_topic": topic, "of_priority": priority}
                parts.append(self._connection.execute(_SELECT["ready"], group))
        rows = heapq.merge(*parts, key=itemgetter(_ORDINAL))
        return [Job._make(row) for row in islice(rows, limit if limit >= 0 else None)]

    def to_cancel(self, worker: str) -> list[str]:
        """Ids of the jobs that ``worker`` holds and that are to be cancelled."""
        return [job_id for (job_id,) in self._connection.execute(_SQL["to_cancel"], (worker,))]

    def put_topic(self, topic: str, status: str) -> None:
        """Keep whether a topic is active or paused."""
        self._connection.execute(_SQL["put_topic"], (topic, status))

    def topics(self) -> dict[str, str]:
        """{topic: active or paused} of the topics that were ever paused."""
        return dict(self._connection.execute(_SQL["topics"]))

    def _one(self, name: str, values: tuple[Any, ...]) -> Job | None:
        row = self._connection.execute(_SQL[name], values).fetchone()
        return Job._make(row) if row else None

    def _many(self, text: str, values: tuple[Any, ...] | dict[str, Any]) -> list[Job]:
        return [Job._make(row) for row in self._connection.execute(text, values)]
