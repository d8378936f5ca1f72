"""Back-pressure: how many jobs of a topic, and how many bytes of payloads, may be pending.

A job that is refused leaves nothing behind; a job that is there already, or comes back by a retry,
a rescue or a requeue, is never refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

import orjson

from tallybook.book.store import Store
from tallybook.clock import Moment, from_text
from tallybook.errors import QueueFull
from tallybook.event import Event
from tallybook.job import Status
from tallybook.layout import Layout
from tallybook.settings import Settings

_RECENT = timedelta(minutes=2)
_MORE = {"job.requeued": 1, "job.cancelled": -1, "job.dead": -1}


class Depths:
    """How deep each bounded topic is, as one enqueue goes on; ``earlier`` are the events of pending
    jobs that stand before it in the same change."""

    def __init__(self, store: Store, settings: Settings, earlier: Iterable[Event] = ()) -> None:
        self._store = store
        self._settings = settings
        self._before: dict[str, tuple[int, int]] = {}
        self._more: dict[str, tuple[int, int]] = {}
        self._bytes: dict[str, int] = {}
        for event in earlier:
            if event.name in _MORE:
                self._count(event["topic"], _MORE[event.name], self._size(event["job_id"]))

    def take(self, place: int, events: Sequence[Event]) -> None:
        """The events of the job at ``place`` of the enqueue. Raises QueueFull where it is one too
        many."""
        first, topic = events[0], events[0]["topic"]
        rules = self._settings.topic(topic)
        if first.name != "job.enqueued" or not rules.is_bounded:
            return
        self._bytes[first["job_id"]] = len(orjson.dumps(first.get("payload")))
        sizes = [self._size(event["job_id"]) for event in events]
        more = self._count(topic, 1, sizes[0])
        for size in sizes[1:]:
            more = self._count(topic, -1, size)
        limits = {name: getattr(rules, name) for name in ("max_pending", "max_pending_bytes")}
        for (name, limit), depth, asked in zip(
            limits.items(), self._depth(topic), more, strict=True
        ):
            if 0 < limit < depth + asked:
                raise QueueFull(topic, name, depth=depth, asked=asked, limit=limit, place=place)

    def _count(self, topic: str, more: int, size: int) -> tuple[int, int]:
        """Take one pending job more, or one less; how many jobs and bytes are asked for by now."""
        number, bytes_ = self._more.get(topic, (0, 0))
        self._more[topic] = (number + more, bytes_ + more * size)
        return self._more[topic]

    def _depth(self, topic: str) -> tuple[int, int]:
        if topic not in self._before:
            self._before[topic] = self._store.queue.ordering.depth(topic, Status.PENDING)
        return self._before[topic]

    def _size(self, job_id: str) -> int:
        if job_id in self._bytes:
            return self._bytes[job_id]
        job = self._store.job(job_id)
        return job.payload_bytes if job else 0


def backlog_s(
    layout: Layout, moment: Moment, counts: Mapping[str, Mapping[str, int]]
) -> float | None:
    """How long all that is pending takes at the rate that the workers of the book last had, by
    metrics/latest.json; None where that is not known."""
    try:
        rows = json.loads(layout.latest.read_bytes())["last"].values()
        rate = sum(_rates(rows, moment))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    pending = sum(of_topic.get(Status.PENDING, 0) for of_topic in counts.values())
    return pending / rate if rate else None


def _rates(rows: Iterable[Mapping[str, str | int]], moment: Moment) -> Iterable[float]:
    for row in rows:
        began, ended = (from_text(str(row[f"interval_{n}_at"])) for n in ("started", "ended"))
        lasted_s = (ended - began).total_seconds()
        if lasted_s > 0 and moment.now - ended < _RECENT:
            yield (int(row["done_count"]) + int(row["dead_count"])) / lasted_s
