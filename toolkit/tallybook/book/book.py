"""Book: enqueue, claim, extend, settle, and what stands where."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tallybook import job as jobs
from tallybook import layout as layouts
from tallybook import payload as payloads
from tallybook.book import changes
from tallybook.book import store as stores
from tallybook.book.changes import Held, Receipt
from tallybook.book.journal import Journal, fold_history
from tallybook.book.store import Store
from tallybook.clock import Clock, Moment, SystemClock
from tallybook.entry import Entry, Put
from tallybook.errors import BadInput, LeaseLost, ReadOnly
from tallybook.event import Event
from tallybook.ids import payload_digest
from tallybook.job import Job, Outcome
from tallybook.layout import Layout
from tallybook.log.reader import Position
from tallybook.log.verify import Mark
from tallybook.log.writer import Node
from tallybook.settings import Settings
from tallybook.settings import load as load_settings


class Book:
    """One node's queue, cache and log. Open it once a process; threads may share it."""

    def __init__(
        self, layout: Layout, settings: Settings, clock: Clock, journal: Journal | None
    ) -> None:
        self.layout = layout
        self.settings = settings
        self.node = _node(settings)
        self._clock = clock
        self._journal_or_none = journal
        self._dice = random.Random()  # noqa: S311 - it spreads retries, it guards nothing

    @classmethod
    def open(
        cls, path: str | Path = "book", *, create: bool = True, clock: Clock | None = None
    ) -> Book:
        """Open the book at ``path``, made where there is none unless ``create`` is False.

        Replays what a crash left and folds a lost state.db anew. Raises BadInput for a path that
        is no book, LogDamaged or FoldRefused where the log cannot be folded.
        """
        root = Path(path)
        if not layouts.is_book(root):
            _require_room(root, create)
            Layout(root).make()
        layout = Layout(root)
        settings = load_settings(layout.settings)
        clock = clock or SystemClock()
        return cls(layout, settings, clock, Journal(layout, settings.log, clock, _node(settings)))

    @classmethod
    def read(cls, path: str | Path) -> Book:
        """Open the book at ``path`` for reading: takes no lock and changes no byte of it.

        Where state.db is lost or behind, the log is folded in memory.
        """
        layout = layouts.require_book(Path(path))
        return _ReadBook(layout, load_settings(layout.settings))

    # changes

    def enqueue(
        self,
        topic: str,
        payload: Any,
        *,
        idempotency_key: str | None = None,
        priority: int = 0,
        delay_s: float | None = None,
        next_attempt_at: datetime | None = None,
        correlation_id: str | None = None,
        enqueued_from: str | None = None,
    ) -> Receipt:
        """Enqueue a job; once this returns, the job is on disk.

        With an ``idempotency_key`` that a job of this topic has: the same payload gives that job,
        another payload raises KeyConflict. Without one the job's own id is its key. Jobs of a
        higher ``priority`` are claimed first. Raises BadInput for what cannot be kept.
        """
        payloads.checked_topic(topic)
        payloads.checked(payload)
        fields = {
            "topic": topic,
            "correlation_id": payloads.checked_text("correlation id", correlation_id),
            "payload": payload,
            "payload_digest": payload_digest(payload),
            "priority": changes.checked_priority(priority),
            "idempotency_key": payloads.checked_text("idempotency key", idempotency_key),
            "enqueued_from": payloads.checked_text("enqueued from", enqueued_from),
            "max_attempts": self.settings.topic(topic).max_attempts,
        }
        due = changes.due(delay_s, next_attempt_at)
        (event,) = self._journal.change(
            lambda store, moment: [changes.enqueued(store, moment, fields, due)]
        )
        return Receipt(event["job_id"], event.name == "job.enqueued")

    def claim(
        self, worker: str, *, topics: Sequence[str] = (), lease_s: float = 60.0
    ) -> Job | None:
        """Lease the next due job to ``worker`` for ``lease_s``; None where none is due."""
        with self._journal.reading() as store:
            if not store.queue.ready(self._clock.moment(), topics, 1):
                return None
        claimed: list[Job] = []

        def decide(store: Store, moment: Moment) -> list[Event]:
            claimed[:] = store.know(store.queue.ready(moment, topics, 1))
            return [job.lease(worker, round(lease_s * 1000), moment) for job in claimed]

        events = self._journal.change(decide)
        return next((jobs.after(job, event) for job, event in zip(claimed, events)), None)  # noqa: B905

    def extend(self, leases: Sequence[Held], worker: str, lease_s: float) -> list[Held]:
        """Keep leases for another ``lease_s``; returns those that are lost, each logged."""
        lost: list[Held] = []

        def decide(store: Store, moment: Moment) -> list[Event]:
            lost.clear()
            return [changes.extended(store, moment, held, worker, lease_s, lost) for held in leases]

        self._journal.change(decide)
        return lost

    def settle(self, outcome: Outcome, puts: Sequence[Put] = ()) -> list[Event]:
        """End the lease with its outcome; the cache writes of a done job become events with it.

        Raises LeaseLost where the lease is over: nothing is changed but the refusal is logged.
        """
        rules = self.settings.topic(outcome.topic)

        def decide(store: Store, moment: Moment) -> list[Event]:
            job = store.job(outcome.job_id)
            if job is None:
                return [outcome.refused("the job was pruned")]
            events = job.settle(outcome, rules, self._dice.random(), moment)
            if events[-1].name == "job.done":
                events += [put.event(store.cache.get(put.key), job.job_id) for put in puts]
            return events

        events = self._journal.change(decide)
        for event in events:
            if event.name == "job.settle_refused":
                raise LeaseLost(f"job {outcome.job_id}: {event['reason']}; this result is dropped")
        return events

    def release(self, leases: Sequence[Held], reason: str) -> list[Event]:
        """Hand back leases uncounted; those that are over are passed over."""

        def decide(store: Store, moment: Moment) -> list[Event]:
            jobs = [(store.job(held.job_id), held) for held in leases]
            return [
                job.release(reason)
                for job, held in jobs
                if job and not job.lease_ended(held.lease_token, moment)
            ]

        return self._journal.change(decide)

    def rescue(self, limit: int = 100) -> list[Event]:
        """Take jobs from holders whose lease is over; returns the events."""
        with self._journal.reading() as store:
            if not store.queue.late(self._clock.moment(), 1):
                return []

        def decide(store: Store, moment: Moment) -> list[Event]:
            late = store.know(store.queue.late(moment, limit))
            return [event for job in late for event in job.rescue(self.settings.topic(job.topic))]

        return self._journal.change(decide)

    def record(self, event: Event) -> Event:
        """Write an event that says something of no single job, such as ``worker.started``."""
        return self._journal.change(lambda *_: [event])[0]

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the lock of the log: nobody changes the book meanwhile."""
        with self._journal.hold():
            yield

    # questions

    def job(self, job_id: str) -> Job | None:
        """The job of that id."""
        with self._reading() as store:
            return store.queue.get(job_id)

    def jobs(
        self, *, status: str | None = None, topic: str | None = None, limit: int = 100
    ) -> list[Job]:
        """Jobs by status and topic, oldest first."""
        with self._reading() as store:
            return store.queue.select(status, topic, limit)

    def counts(self) -> dict[str, dict[str, int]]:
        """{topic: {status: number of jobs}}."""
        with self._reading() as store:
            return store.queue.counts()

    def oldest_pending_at(self) -> str | None:
        """When the oldest pending job was enqueued (RFC 3339)."""
        with self._reading() as store:
            return store.queue.oldest_pending_at()

    def enqueued_since(self, ordinal: int) -> int:
        """How many jobs came after the ``ordinal``-th event of the history."""
        with self._reading() as store:
            return store.queue.enqueued_since(ordinal)

    def entry(self, key: str) -> Entry | None:
        """The cache entry of that key."""
        with self._reading() as store:
            return store.cache.get(key)

    def entries(self, limit: int = 100) -> list[Entry]:
        """Cache entries by key."""
        with self._reading() as store:
            return store.cache.select(limit)

    def topics(self) -> dict[str, str]:
        """{topic: active or paused} of the topics that were ever paused."""
        with self._reading() as store:
            return store.queue.topics()

    def position(self) -> Position:
        """How far the log is applied."""
        with self._reading() as store:
            return store.position()

    def lost_marks(self) -> list[Mark]:
        """Where the log once reached and, by the state folded from it, no longer does."""
        end = self.position()
        known = stores.marks(self.layout)
        return [mark for mark in known if mark.writer == end.writer and mark.seq > end.seq]

    def moment(self) -> Moment:
        """This instant by the book's clock."""
        return self._clock.moment()

    def close(self) -> None:
        """Close the book; it may be opened again."""
        if self._journal_or_none:
            self._journal_or_none.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def _journal(self) -> Journal:
        if self._journal_or_none is None:
            raise ReadOnly(f"the book at {self.layout.root} is open for reading only")
        return self._journal_or_none

    @contextmanager
    def _reading(self) -> Iterator[Store]:
        with self._journal.reading() as store:
            yield store


class _ReadBook(Book):
    """A book that is only read."""

    def __init__(self, layout: Layout, settings: Settings) -> None:
        super().__init__(layout, settings, SystemClock(), None)
        self._store = _readable(layout)

    @contextmanager
    def _reading(self) -> Iterator[Store]:
        yield self._store

    def close(self) -> None:
        """Close state.db."""
        self._store.connection.close()


def _readable(layout: Layout) -> Store:
    """state.db where it knows all that the log says, else the log folded in memory."""
    store = stores.open_read_only(layout.state)
    if store and _is_current(layout, store.position()):
        return store
    tables, position = fold_history(layout)
    return stores.in_memory(tables, position)


def _is_current(layout: Layout, position: Position) -> bool:
    segments = layout.segments()
    sizes = {path.name: path.stat().st_size for path in segments}
    return not segments or sizes.get(position.segment, -1) >= position.offset


def _node(settings: Settings) -> Node:
    host = settings.node.host or socket.gethostname()
    return Node(settings.node.id or host, host)


def _require_room(root: Path, create: bool) -> None:
    if not create:
        layouts.require_book(root)
    if root.exists() and not root.is_dir():
        raise BadInput(f"{root} is a file; a book is a folder")
    if root.is_dir() and any(root.iterdir()) and not _could_be_book(root):
        raise BadInput(f"{root} is a folder with other files in it; name an empty or a new one")


def _could_be_book(root: Path) -> bool:
    """Whether nothing but settings lie there: a book that is about to begin."""
    return {path.name for path in root.iterdir()} <= {"book.toml", "profiles", "plans"}
