"""Lines, locks and buckets in SQLite: what ``tallybook.order`` and the limits ask."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

import orjson

from tallybook.job import Job
from tallybook.order import Line, Lock


class Ordering:
    """The order of the jobs behind ``connection``. Jobs come without payload and result."""

    def __init__(self, connection: sqlite3.Connection, sql: Mapping[str, str]) -> None:
        self._connection = connection
        self._sql = sql

    def fronts(self, lines: Collection[Line]) -> dict[Line, list[Job]]:
        """The jobs at the front of each line, or leased there."""
        found: dict[Line, list[Job]] = defaultdict(list)
        for job in self._jobs("fronts", list(lines)):
            found[job.topic, job.ordering_key or ""].append(job)
        return found

    def firsts(self, lines: Collection[Line]) -> dict[Line, Job]:
        """The job that came first of each line."""
        found = self._jobs("firsts", list(lines))
        return {(job.topic, job.ordering_key or ""): job for job in found}

    def superseded(self, line: Line) -> list[Job]:
        """The pending jobs of a line, oldest first."""
        return [Job._make(row) for row in self._connection.execute(self._sql["superseded"], line)]

    def standing(self, resources: Collection[str]) -> list[Job]:
        """The jobs of resources that could be claimed."""
        return self._jobs("standing", list(resources))

    def waiting(self, resources: Collection[str]) -> list[Job]:
        """The first of the jobs that wait for resources, by topic and kind."""
        return self._jobs("waiting", list(resources))

    def lock(self, resource: str) -> Lock | None:
        """Who has a resource."""
        row = self._connection.execute(self._sql["lock"], (resource,)).fetchone()
        return Lock._make(row) if row else None

    def locked(self, resources: Collection[str]) -> dict[str, Lock]:
        """Who has which of ``resources``."""
        asked = (orjson.dumps(list(resources)).decode(),)
        rows = self._connection.execute(self._sql["locked"], asked)
        return {row[0]: Lock._make(row) for row in rows}

    def locks(
        self, after: str = "", limit: int = -1, topic: str | None = None, worker: str | None = None
    ) -> list[tuple[Lock, str | None]]:
        """Locks by resource, each with the end of its lease."""
        asked = {"after": after, "limit": limit, "topic": topic, "worker": worker}
        rows = self._connection.execute(self._sql["locks"], asked)
        return [(Lock._make(row[:-1]), row[-1]) for row in rows]

    def put_locks(self, locks: Iterable[Lock]) -> None:
        """Keep who has which resource."""
        self._connection.executemany(self._sql["put_lock"], locks)

    def drop_locks(self, resources: Iterable[str]) -> None:
        """Nobody has these any more."""
        self._connection.executemany(self._sql["drop_lock"], ((name,) for name in resources))

    def bucket(self, topic: str) -> int:
        """When the bucket of a topic is full again, in µs of boot time; 0: long since."""
        row = self._connection.execute(self._sql["bucket"], (topic,)).fetchone()
        return row[0] if row else 0

    def buckets(self) -> dict[str, int]:
        """When which bucket is full again, in µs of boot time."""
        return dict(self._connection.execute(self._sql["buckets"]))

    def put_bucket(self, topic: str, full_us: int) -> None:
        """Keep when a bucket is full again."""
        self._connection.execute(self._sql["put_bucket"], (topic, full_us))

    def drop_buckets(self) -> None:
        """All buckets are full."""
        self._connection.execute(self._sql["drop_buckets"])

    def depth(self, topic: str, status: str) -> tuple[int, int]:
        """How many jobs of a topic have a status, and the bytes of their payloads."""
        row = self._connection.execute(self._sql["depth"], (topic, status)).fetchone()
        return (row[0], row[1]) if row else (0, 0)

    def _jobs(self, name: str, asked: list[Line] | list[str]) -> list[Job]:
        values = (orjson.dumps(asked).decode(),)
        return [Job._make(row) for row in self._connection.execute(self._sql[name], values)]
