"""Which jobs are claimed next: by priority, then due time, then age, and never by a scan.

Pending jobs are of three kinds, each with an index of its own that has the jobs of a topic in
claim order: those that need not wait (*ready*), those that wait for an instant of boot time
(*delayed*), those that wait for an hour that the user gave (*dated*). A job that waits is thus
never in the way of one that does not. There is no index over all topics, which every enqueue and
claim would pay for: the heads of the topics are compared. The work of a claim is bounded by its
limit and by the number of topics and priorities, never by the number of jobs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from tallybook.clock import Moment
from tallybook.job import Job

_ABOVE_ALL = 10**9
NO_ROOMS: Mapping[str, int] = {}


class Claiming:
    """The claim order of the jobs behind ``connection``."""

    def __init__(self, connection: sqlite3.Connection, sql: Mapping[str, str]) -> None:
        self._connection = connection
        self._sql = sql

    def ready(
        self, moment: Moment, topics: Sequence[str], limit: int, rooms: Mapping[str, int]
    ) -> list[Job]:
        """Pending jobs that are due, of ``topics`` (none: of any) that are not paused; of a topic
        at most as many as ``rooms`` has for it, of a resource one."""
        asked = {"boot_us": moment.boot_us, "now": moment.wall()}
        delayed, dated, paused = self._connection.execute(self._sql["aside"], asked).fetchone()
        wanted = self._running(topics) if paused or not topics else topics
        limits = {topic: min(rooms.get(topic, limit), limit) for topic in wanted}
        limits = {topic: room for topic, room in limits.items() if room > 0}
        if not limits:
            return []
        found = self._ready(limits, limit)
        if delayed or dated:
            found += self._waited("delayed", limits, moment.boot_us) if delayed else []
            found += self._waited("dated", limits, asked["now"]) if dated else []
            found.sort(key=_due)
        if rooms or any(job.resource for job in found):
            found = list(fitting(found, limits))
        return found[:limit]

    def pending_topics(self) -> list[str]:
        """Topics with pending jobs, paused or not."""
        return [topic for (topic,) in self._connection.execute(self._sql["pending_topics"])]

    def priorities(self, kind: str, topic: str) -> Iterator[int]:
        """The priorities that pending jobs of a kind and a topic have, the highest first."""
        priority = self._below(kind, topic, _ABOVE_ALL)
        while priority is not None:
            yield priority
            priority = self._below(kind, topic, priority)

    def _running(self, topics: Sequence[str]) -> Sequence[str]:
        """Those of ``topics`` (none: of all) that have pending jobs and are not paused."""
        paused = {topic for (topic,) in self._connection.execute(self._sql["paused"])}
        running = (topic for topic in self.pending_topics() if topic not in paused)
        return [topic for topic in running if not topics or topic in topics]

    def _ready(self, limits: Mapping[str, int], limit: int) -> list[Job]:
        if len(limits) == 1:
            return self._many("ready", next(iter(limits.items())))
        asked = {"topics": orjson.dumps(list(limits)).decode(), "limit": limit}
        heads = self._connection.execute(self._sql["heads"], asked).fetchall()
        ordinals = [heads[0][2]] if heads else []
        if limit > 1:  # no topic but those of the first heads can have one of the first jobs
            keys = (key for topic, *_ in heads for key in self._keys(topic, limits[topic]))
            ordinals = [ordinal for _, ordinal in sorted(keys, key=_rank)[:limit]]
        return sorted(self._many("by_ordinals", (orjson.dumps(ordinals).decode(),)), key=_age)

    def _keys(self, topic: str, limit: int) -> Iterable[tuple[int, int]]:
        return self._connection.execute(self._sql["ready_keys"], (topic, limit))

    def _waited(self, kind: str, limits: Mapping[str, int], until: object) -> list[Job]:
        """The first due jobs of a kind that waits: priority by priority of each topic."""
        found: list[Job] = []
        for topic, left in limits.items():
            for priority in self.priorities(kind, topic):
                due = self._many(kind, (topic, priority, until, left))
                found += due
                left -= len(due)
                if not left:
                    break
        return found

    def _below(self, kind: str, topic: str, priority: int) -> int | None:
        text = self._sql[f"{kind}_priority"]
        row: tuple[int | None] = self._connection.execute(text, (topic, priority)).fetchone()
        return row[0]

    def _many(self, name: str, values: tuple[Any, ...]) -> list[Job]:
        return [Job._make(row) for row in self._connection.execute(self._sql[name], values)]


def fitting(jobs: Iterable[Job], rooms: Mapping[str, int]) -> Iterator[Job]:
    """Those of ``jobs`` that may be claimed together: of a topic at most as many as ``rooms`` has
    for it, of a resource one."""
    left, taken = dict(rooms), set[str]()
    for job in jobs:
        if left.get(job.topic, 1) > 0 and job.resource not in taken:
            left[job.topic] = left.get(job.topic, _ABOVE_ALL) - 1
            taken |= {job.resource} if job.resource else set()
            yield job


def _rank(key: tuple[int, int]) -> tuple[int, int]:
    return -key[0], key[1]


def _age(job: Job) -> tuple[int, int]:
    return -job.priority, job.ordinal


def _due(job: Job) -> tuple[int, str, int]:
    """Claim order across kinds: a job that need not wait was due when it was enqueued."""
    return -job.priority, job.next_attempt_at or job.created_at, job.ordinal
