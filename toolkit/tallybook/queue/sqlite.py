"""The queue on SQLite: rows of the table ``jobs``. The caller holds the transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from tallybook import statements
from tallybook.clock import Moment, from_text
from tallybook.job import Job

_COLUMNS = tuple(name.removesuffix("_json") for name in Job._fields)
_SQL = {
    name: text.replace("{columns}", ", ".join(_COLUMNS)).replace(
        "{marks}", ", ".join("?" * len(_COLUMNS))
    )
    for name, text in statements.load("tallybook.queue", "queue.sql").items()
}
SCHEMA = _SQL["schema"]


class SqliteQueue:
    """The jobs of one book, over a connection that the book owns."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def get(self, job_id: str) -> Job | None:
        """The job of that id."""
        return self._one("get", (job_id,))

    def by_keys(self, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, str]]:
        """{(topic, idempotency key): (job id, payload digest)} of the keys that jobs hold."""
        rows = self._connection.execute(_SQL["by_keys"], (orjson.dumps(keys).decode(),))
        return {(topic, key): (job_id, digest) for topic, key, job_id, digest in rows}

    def put(self, job: Job) -> None:
        """Keep the state of a job, new or not."""
        self._connection.execute(_SQL["put"], job)

    def put_all(self, jobs: Iterable[Job]) -> None:
        """Keep many jobs at once."""
        self._connection.executemany(_SQL["put"], jobs)

    def drop(self, job_id: str) -> None:
        """Forget a job."""
        self._connection.execute(_SQL["drop"], (job_id,))

    def open(self) -> Iterable[Job]:
        """The jobs that are pending or leased."""
        return self._many("open", ())

    def ready(self, moment: Moment, topics: Sequence[str], limit: int) -> list[Job]:
        """Pending jobs that are due, by priority (higher first), due time, age."""
        return self._many(
            "ready",
            {
                "boot_us": moment.boot_us,
                "now": moment.wall(),
                "topics": orjson.dumps(list(topics)).decode() if topics else None,
                "limit": limit,
            },
        )

    def late(self, moment: Moment, limit: int) -> list[Job]:
        """Leased jobs whose lease has run out by boot time."""
        return self._many("late", (moment.boot_us, limit))

    def held_by(self, worker: str) -> list[Job]:
        """The jobs that ``worker`` holds a lease of, run out or not."""
        return self._many("held_by", (worker,))

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
        row = self._connection.execute(_SQL["oldest_pending"]).fetchone()
        return row[0] if row else None

    def enqueued_since(self, ordinal: int) -> int:
        """How many jobs came after the ``ordinal``-th event of the history."""
        row = self._connection.execute(_SQL["enqueued_since"], (ordinal,)).fetchone()
        return int(row[0])

    def select(self, status: str | None, topic: str | None, limit: int) -> list[Job]:
        """Jobs by status and topic (None: any), oldest first, at most ``limit``."""
        return self._many("select", {"status": status, "topic": topic, "limit": limit})

    def put_topic(self, topic: str, status: str) -> None:
        """Keep whether a topic is active or paused."""
        self._connection.execute(_SQL["put_topic"], (topic, status))

    def topics(self) -> dict[str, str]:
        """{topic: active or paused} of the topics that were ever paused."""
        return dict(self._connection.execute(_SQL["topics"]))

    def _one(self, name: str, values: tuple[Any, ...]) -> Job | None:
        row = self._connection.execute(_SQL[name], values).fetchone()
        return Job._make(row) if row else None

    def _many(self, name: str, values: tuple[Any, ...] | dict[str, Any]) -> list[Job]:
        return [Job._make(row) for row in self._connection.execute(_SQL[name], values)]
