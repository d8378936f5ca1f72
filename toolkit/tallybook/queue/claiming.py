"""Which jobs are claimed next: by priority, then due time, then age, and never by a scan.

Pending jobs are of three kinds, each with an index of its own that has all the jobs of its kind
in claim order: those that need not wait (*ready*), those that wait for an instant of boot time
(*delayed*), those that wait for an hour that the user gave (*dated*). A job that waits is thus
never in the way of one that does not. The work of a claim is bounded by its limit and by the
number of topics and priorities, never by the number of jobs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

from tallybook.clock import Moment
from tallybook.job import Job

_LOOK_AHEAD = 64
_ABOVE_ALL = 10**9


class Claiming:
    """The claim order of the jobs behind ``connection``."""

    def __init__(self, connection: sqlite3.Connection, sql: Mapping[str, str]) -> None:
        self._connection = connection
        self._sql = sql

    def ready(self, moment: Moment, topics: Sequence[str], limit: int) -> list[Job]:
        """Pending jobs that are due, of ``topics`` (none: of any) that are not paused."""
        asked = {"boot_us": moment.boot_us, "now": moment.wall()}
        delayed, dated, paused = self._connection.execute(self._sql["aside"], asked).fetchone()
        wanted = self._running(topics) if paused else topics
        if paused and not wanted:
            return []
        found = self._ready(wanted, limit)
        if not (delayed or dated):
            return found
        every = wanted or self._running(())
        found += self._waited("delayed", every, moment.boot_us, limit) if delayed else []
        found += self._waited("dated", every, asked["now"], limit) if dated else []
        return sorted(found, key=_due)[:limit]

    def _running(self, topics: Sequence[str]) -> Sequence[str]:
        """Those of ``topics`` (none: of all) that have pending jobs and are not paused."""
        rows = self._connection.execute(self._sql["pending_topics"])
        return [topic for (topic,) in rows if not topics or topic in topics]

    def _ready(self, topics: Sequence[str], limit: int) -> list[Job]:
        if not topics:
            return self._many("ready", (limit,))
        if len(topics) == 1:
            return self._many("ready_of_topic", (topics[0], limit))
        found, is_all = self._looked_through(topics, limit)
        if is_all:
            return found
        each = (self._many("ready_of_topic", (topic, limit)) for topic in topics)
        return sorted((job for jobs in each for job in jobs), key=_age)[:limit]

    def _looked_through(self, topics: Sequence[str], limit: int) -> tuple[list[Job], bool]:
        """The first jobs of ``topics``, looked for among the first of all; whether that was
        enough."""
        found: list[Job] = []
        ahead, seen = limit + _LOOK_AHEAD, 0
        with closing(self._connection.execute(self._sql["ready"], (ahead,))) as rows:
            for row in rows:
                seen += 1
                job = Job._make(row)
                if job.topic in topics:
                    found.append(job)
                    if len(found) == limit:
                        return found, True
        return found, seen < ahead

    def _waited(self, kind: str, topics: Iterable[str], until: object, limit: int) -> list[Job]:
        """The first due jobs of a kind that waits: priority by priority of each topic."""
        found: list[Job] = []
        for topic in topics:
            left, priority = limit, self._below(kind, topic, _ABOVE_ALL)
            while left and priority is not None:
                due = self._many(kind, (topic, priority, until, left))
                found += due
                left -= len(due)
                priority = self._below(kind, topic, priority)
        return found

    def _below(self, kind: str, topic: str, priority: int) -> int | None:
        text = self._sql[f"{kind}_priority"]
        row: tuple[int | None] = self._connection.execute(text, (topic, priority)).fetchone()
        return row[0]

    def _many(self, name: str, values: tuple[Any, ...]) -> list[Job]:
        return [Job._make(row) for row in self._connection.execute(self._sql[name], values)]


def _age(job: Job) -> tuple[int, int]:
    return -job.priority, job.ordinal


def _due(job: Job) -> tuple[int, str, int]:
    """Claim order across kinds: a job that need not wait was due when it was enqueued."""
    return -job.priority, job.next_attempt_at or job.created_at, job.ordinal
