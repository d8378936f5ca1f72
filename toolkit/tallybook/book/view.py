"""What a book can be asked: jobs, entries, counts, and how far its log is applied."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from pathlib import Path
from typing import Self

from tallybook import entry as entries
from tallybook import layout as layouts
from tallybook.book import opening
from tallybook.book.folding import readable
from tallybook.book.limits import Limits
from tallybook.book.store import Store
from tallybook.cache.contract import Cache
from tallybook.clock import Clock, Moment, SystemClock
from tallybook.entry import Entry, Read
from tallybook.event import record
from tallybook.job import WAITS_FOR_LINE, WAITS_FOR_RESOURCE, Job
from tallybook.layout import Layout
from tallybook.log import loss
from tallybook.log.marks import Mark
from tallybook.log.reader import Hole, Position
from tallybook.log.writer import Node
from tallybook.order import Lock
from tallybook.queue.contract import Selection
from tallybook.queue.ordering import Ordering
from tallybook.settings import Settings
from tallybook.settings import load as load_settings


@record
class HeldLock:
    """A lock, until when the lease lasts that it belongs to, and for how long it is held."""

    lock: Lock
    locked_until: str | None
    held_ms: float


class BookView(ABC):
    """The questions; ``Book`` adds the changes."""

    def __init__(self, layout: Layout, settings: Settings, clock: Clock | None) -> None:
        self.layout = layout
        self.settings = settings
        self.node = node_of(settings)
        self._clock = clock or SystemClock()

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Store]:
        """The state, for reading."""

    @abstractmethod
    def close(self) -> None:
        """Close the book; it may be opened again."""

    def _cache(self, store: Store) -> Cache:
        """The cache that reads come from."""
        return store.cache

    def job(self, job_id: str) -> Job | None:
        """The job of that id."""
        with self._reading() as store:
            return store.queue.get(job_id)

    def jobs(
        self, *, status: str | None = None, topic: str | None = None, limit: int = 100
    ) -> list[Job]:
        """Jobs by status and topic, oldest first."""
        with self._reading() as store:
            return store.queue.select(Selection(status, topic), limit)

    def selected(self, selection: Selection, limit: int = 100, after: int = 0) -> list[Job]:
        """Jobs of a selection that came after the ``after``-th event, oldest first."""
        with self._reading() as store:
            return store.queue.select(selection, limit, after)

    def to_cancel(self, worker: str) -> list[str]:
        """Ids of the jobs that ``worker`` holds and that are to be cancelled."""
        with self._reading() as store:
            return store.queue.to_cancel(worker)

    def counts(self) -> dict[str, dict[str, int]]:
        """{topic: {status: number of jobs}}."""
        with self._reading() as store:
            return store.queue.counts()

    def oldest_pending_at(self) -> str | None:
        """When the oldest pending job was enqueued (RFC 3339)."""
        with self._reading() as store:
            return store.queue.oldest_pending_at()

    def next_due_s(self, topics: Sequence[str] = ()) -> float | None:
        """Seconds until a pending job may be claimed that now may not: it is due then, or the rate
        of its topic (one of ``topics``, where they are given) lets it through; None where only
        events can help."""
        with self._reading() as store:
            moment = self._clock.moment()
            waits = [store.queue.next_due_s(moment)]
            if self.settings.limited:
                waits.append(self._frees_s(store, moment, topics))
        return min((wait_s for wait_s in waits if wait_s is not None), default=None)

    def _frees_s(self, store: Store, moment: Moment, topics: Sequence[str]) -> float | None:
        paused = {topic for topic, status in store.queue.topics().items() if status == "paused"}
        counts = {t: n for t, n in store.queue.counts().items() if t not in paused}
        return Limits(store, moment, self.settings.limited, topics).frees_s(counts)

    def locks(
        self,
        limit: int = 100,
        *,
        after: str = "",
        topic: str | None = None,
        worker: str | None = None,
    ) -> list[HeldLock]:
        """Who has which resource, by the name of the resource, from behind ``after`` on."""
        moment = self._clock.moment()
        with self._reading() as store:
            found = store.queue.ordering.locks(after, limit, topic, worker)
        return [HeldLock(lock, locked_until, lock.held_ms(moment)) for lock, locked_until in found]

    def lock(self, resource: str) -> Lock | None:
        """Who has a resource."""
        with self._reading() as store:
            return store.queue.ordering.lock(resource)

    def in_the_way(self, job: Job) -> Job | None:
        """The job that ``job`` waits for: the one at the front of its ordering key, or the one
        that has its resource, or that stands before it for that; None where it waits for none."""
        with self._reading() as store:
            job_id = _in_the_way(store.queue.ordering, job)
            return store.queue.get(job_id) if job_id else None

    def enqueued_since(self, ordinal: int) -> int:
        """How many jobs came after the ``ordinal``-th event of the history."""
        with self._reading() as store:
            return store.queue.enqueued_since(ordinal)

    def entry(self, key: str) -> Entry | None:
        """The cache entry of that key."""
        with self._reading() as store:
            return self._cache(store).get(key)

    def read_entry(
        self, key: str, *, at_least_version: int | None = None, allow_expired: bool = False
    ) -> Read:
        """What a reader of that key gets; it costs no write.

        An entry whose TTL is over or whose version is below ``at_least_version`` is not given;
        ``state`` says why. With ``allow_expired`` an expired one is, and ``state`` says so.
        """
        entry = self.entry(key)
        if entry is None:
            return entries.NOTHING
        moment = self._clock.moment()
        return entries.read(entry, moment, at_least_version, allow_expired=allow_expired)

    def entries(
        self,
        limit: int = 100,
        *,
        prefix: str = "",
        pending: bool | None = None,
        expired: bool | None = None,
    ) -> list[Entry]:
        """Cache entries by key; each filter that is given leaves those that fit."""
        moment = self._clock.moment()
        with self._reading() as store:
            fitting = (
                entry
                for entry in self._cache(store).scan(prefix)
                if pending in (None, entry.pending)
                and (expired is None or expired == entry.is_expired(moment))
            )
            return list(islice(fitting, limit))

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
        return loss.lost_marks(self.layout, self.position(), opening.marks(self.layout))

    def told_losses(self) -> list[Hole]:
        """The lines that the log itself says were lost, until it is pruned beyond that place."""
        return loss.told(self.layout)

    def moment(self) -> Moment:
        """This instant by the book's clock."""
        return self._clock.moment()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ReadBook(BookView):
    """A book that is only read: takes no lock and changes no byte of it."""

    def __init__(self, path: str | Path, clock: Clock | None = None) -> None:
        layout = layouts.require_book(Path(path))
        super().__init__(layout, load_settings(layout.settings), clock)
        self._store = readable(layout)

    @contextmanager
    def _reading(self) -> Iterator[Store]:
        yield self._store

    def close(self) -> None:
        """Close state.db."""
        self._store.connection.close()


def _in_the_way(ordering: Ordering, job: Job) -> str | None:
    if job.waits_for == WAITS_FOR_LINE:
        line = (job.topic, job.ordering_key or "")
        ahead = ordering.fronts([line]).get(line, []) + list(ordering.firsts([line]).values())
        return ahead[0].job_id if ahead else None
    if job.waits_for == WAITS_FOR_RESOURCE:
        lock = ordering.lock(job.resource or "")
        if lock:
            return lock.job_id
        standing = ordering.standing([job.resource or ""])
        return next((one.job_id for one in standing if one.topic == job.topic), None)
    return None


def node_of(settings: Settings) -> Node:
    """How the node of a book is named: by its settings, else by the host."""
    host = settings.node.host or socket.gethostname()
    return Node(settings.node.id or host, host)
