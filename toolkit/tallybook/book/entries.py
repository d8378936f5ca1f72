"""The cache of a book for whoever is no handler: each verb is one change of its own."""

from __future__ import annotations

import logging
import sqlite3
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from tallybook.book import store as stores
from tallybook.book.cachefile import CacheFile
from tallybook.book.caching import Write, Writing
from tallybook.book.gathering import Decide
from tallybook.book.recent import RecentEntries
from tallybook.book.reserve import Reserve
from tallybook.book.store import Store
from tallybook.book.view import BookView
from tallybook.cache.contract import Cache
from tallybook.clock import Clock, Moment
from tallybook.entry import Entry, Invalidate, Put, after
from tallybook.errors import TallybookError, VersionConflict
from tallybook.event import Event
from tallybook.layout import Layout
from tallybook.log.reader import Position
from tallybook.settings import Settings

log = logging.getLogger("tallybook.book")


class CachedBook(BookView):
    """A book whose cache can be changed."""

    def __init__(self, layout: Layout, settings: Settings, clock: Clock | None) -> None:
        super().__init__(layout, settings, clock)
        self._flights = _Flights()
        self._reserve = Reserve(layout.root, settings.log.reserve_mb)
        is_json = settings.cache.store == "json"
        interval_ms = settings.cache.flush_interval_ms
        self._cache_file = CacheFile(layout, interval_ms) if is_json else None
        self._recent = RecentEntries(self._certain_end)

    @abstractmethod
    def _change(self, decide: Decide) -> list[Event]:
        """Do what ``decide`` says of the state; its events, once they are on disk."""

    @abstractmethod
    def _certain_end(self) -> Position | None:
        """Where the log ends, where it is certain that nobody has changed anything since."""

    @abstractmethod
    def _reading_alone(self) -> AbstractContextManager[Store]:
        """The state, for reading, while nobody changes the book."""

    def put_entry(self, key: str, value: Any, **fields: Any) -> Entry:
        """Write ``value`` (JSON) under ``key``; on disk when this returns.

        ``fields`` are those of ``entry.Put``. With a ``base_version`` that is no longer the
        entry's nothing is written, ``conflict.detected`` is logged and VersionConflict raised.
        Raises BadInput for what cannot be kept, NoRoom where less than the reserve is free on the
        disk.
        """
        return self._put(Put(key, value, **fields).checked())

    def write_entries(self, decide: Callable[[Cache], Sequence[Write]]) -> list[Event]:
        """Make the writes that ``decide`` asks for of the cache as it stands, with one sync; their
        events. Nobody changes the cache in between."""
        return self._change(lambda store, _: Writing(store.cache).events(decide(store.cache)))

    def invalidate(self, key: str, *, reason: str | None = None) -> bool:
        """Forget the entry of ``key``; False where there is none, and nothing is logged."""
        return bool(self._invalidate(Invalidate(key, reason=reason)))

    def invalidate_dependents(
        self, key: str, *, reason: str | None = None, limit: int | None = None
    ) -> list[str]:
        """Forget every entry that depends on ``key``, and what depends on those, in one change.

        Returns their keys; the entry of ``key`` itself stays. With ``limit`` at most so many go,
        the furthest from ``key`` first, so that the same call again finds the others.
        """
        return self._invalidate(Invalidate(key, dependents=True, reason=reason, limit=limit))

    def dependents(self, key: str, limit: int | None = None) -> list[str]:
        """The keys that ``invalidate_dependents`` would forget."""
        wish = Invalidate(key, dependents=True, limit=limit).checked()
        with self._reading() as store:
            return [event["key"] for event in Writing(store.cache).events([wish])]

    def get_or(
        self,
        key: str,
        source: Callable[[], Any],
        *,
        at_least_version: int | None = None,
        job_id: str | None = None,
        **fields: Any,
    ) -> Entry:
        """The entry of ``key``; where no reader may use it, what ``source`` gives, put first.

        Threads of this process that miss the same key call ``source`` once. What it raises is
        raised here and nothing is written. ``fields`` are those of ``entry.Put``.
        """
        found = self.read_entry(key, at_least_version=at_least_version).entry
        if found:
            return found
        with self._flights.alone(key):
            found = self.read_entry(key, at_least_version=at_least_version).entry
            if found:
                return found
            put = Put(key, source(), **fields).checked()
            return self._put(put, at_least_version, job_id)

    def _put(self, put: Put, at_least: int | None = None, job_id: str | None = None) -> Entry:
        self._reserve.require()

        def decide(store: Store, _: Moment) -> list[Event]:
            writing = Writing(store.cache)
            wish = put if at_least is None else writing.at_least(put, at_least)
            return writing.events([wish], job_id)

        event = self._change(decide)[0]
        made = after(event) if event.name == "cache.put" else None
        if made is None:
            raise VersionConflict(f"cache key {put.key}: {event['reason']}; read it again")
        return made

    def _invalidate(self, wish: Invalidate) -> list[str]:
        wish.checked()
        events = self._change(lambda store, _: Writing(store.cache).events([wish]))
        return [event["key"] for event in events]

    def _cache(self, store: Store) -> Cache:
        return self._cache_file.at(store) if self._cache_file else store.cache

    def entry(self, key: str) -> Entry | None:
        """The cache entry of that key."""
        return self._recent.get(key, super().entry)

    def _flush_if_due(self) -> None:
        if self._cache_file and self._cache_file.is_due:
            self._flush()

    def _flush(self) -> None:
        """Write cache.json, where there is one to write. Where that fails nothing is lost, since
        state.db has the cache too: the next flush tries again."""
        if not self._cache_file:
            return
        try:
            with stores.told(self.layout.cache_file), self._reading_alone() as store:
                self._cache_file.flush(store)
        except (TallybookError, sqlite3.DatabaseError) as error:
            log.warning("cache.json is written later: %s", error)


@dataclass
class _Flights:
    """One thread at a time for each key."""

    gate: threading.Lock = field(default_factory=threading.Lock)
    open: dict[str, tuple[threading.Lock, int]] = field(default_factory=dict)

    @contextmanager
    def alone(self, key: str) -> Iterator[None]:
        """Wait until no other thread is inside for ``key``."""
        with self.gate:
            lock, waiting = self.open.get(key, (threading.Lock(), 0))
            self.open[key] = (lock, waiting + 1)
        try:
            with lock:
                yield
        finally:
            with self.gate:
                lock, waiting = self.open.pop(key)
                if waiting > 1:
                    self.open[key] = (lock, waiting - 1)
