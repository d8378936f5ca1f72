"""What a book can be asked: jobs, entries, counts, and how far its log is applied."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self

from tallybook import entry as entries
from tallybook import layout as layouts
from tallybook.book import store as stores
from tallybook.book.folding import readable
from tallybook.book.store import Store
from tallybook.cache.contract import Cache
from tallybook.clock import Clock, Moment, SystemClock
from tallybook.entry import Entry, Read
from tallybook.job import Job
from tallybook.layout import Layout
from tallybook.log import loss
from tallybook.log.reader import Hole, Position
from tallybook.log.verify import Mark
from tallybook.log.writer import Node
from tallybook.queue.contract import Selection
from tallybook.settings import Settings
from tallybook.settings import load as load_settings


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

    def next_due_s(self) -> float | None:
        """Seconds until the first of the pending jobs that wait is due; None where none waits."""
        with self._reading() as store:
            return store.queue.next_due_s(self._clock.moment())

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
        return loss.lost_marks(self.layout, self.position(), stores.marks(self.layout))

    def told_losses(self) -> list[Hole]:
        """The lines that the log itself says were lost, until it is pruned beyond that place."""
        return loss.told(self.layout)

    def moment(self) -> Moment:
        """This instant by the book's clock."""
        return self._clock.moment()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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


def node_of(settings: Settings) -> Node:
    """How the node of a book is named: by its settings, else by the host."""
    host = settings.node.host or socket.gethostname()
    return Node(settings.node.id or host, host)
