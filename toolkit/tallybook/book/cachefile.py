"""cache.json: the cache of a book in memory and in one JSON file, kept up with state.db.

state.db has every entry too, in the change that made it, so checkpoints are whole and the setting
may be changed at any time. The log says which keys changed since the last look, in whatever
process; their entries come from state.db. The file is written under the lock of the log, so it is
the cache at one place of the log and never older than what it replaces.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tallybook.book.store import Store
from tallybook.cache.json_file import JsonCache
from tallybook.errors import LogDamaged
from tallybook.layout import Layout
from tallybook.log.reader import Position, history, reaches

_WRITES = ("cache.put", "cache.invalidated")


class CacheFile:
    """The entries of one book in memory. The caller sees to it that one thread at a time calls."""

    def __init__(
        self, layout: Layout, flush_interval_ms: int, monotonic: Callable[[], float] | None = None
    ) -> None:
        self._layout = layout
        self._monotonic = monotonic or time.monotonic
        self._interval_s = flush_interval_ms / 1000
        self._due_s = self._monotonic() + self._interval_s
        self._cache = JsonCache(layout.cache_file)
        self._store: Store | None = None

    def at(self, store: Store) -> JsonCache:
        """The entries as they stand in ``store``."""
        end = store.certain_end() or store.position()
        is_same = store is self._store or self._store is None
        self._store = store
        if not (is_same and self._follow(store, end)):
            self._fold_anew(store)
        self._cache.position = end
        return self._cache

    @property
    def is_due(self) -> bool:
        """Whether the last flush is longer ago than the interval."""
        return self._monotonic() >= self._due_s

    def flush(self, store: Store) -> None:
        """Write the file where it lacks anything; under the lock of the log."""
        self._due_s = self._monotonic() + self._interval_s
        if not self.at(store).is_flushed:
            self._cache.flush()

    def _follow(self, store: Store, end: Position) -> bool:
        """Take over the keys that changed up to ``end``; False where the log cannot say which."""
        begun = self._cache.position
        if begun == end:
            return True
        if begun.writer != end.writer or begun.seq > end.seq:
            return False
        if not begun.segment or not reaches(self._layout, begun):
            return False
        try:
            keys = self._changed_keys(begun, end)
        except LogDamaged:
            return False
        for key in keys:
            self._take(store, key)
        return True

    def _changed_keys(self, begun: Position, end: Position) -> set[str]:
        keys = set()
        for event, position in history(self._layout, begun):
            if event.name in _WRITES:
                keys.add(event["key"])
            if position.seq >= end.seq:
                break
        return keys

    def _take(self, store: Store, key: str) -> None:
        entry = store.cache.get(key)
        if entry:
            self._cache.put(entry)
        else:
            self._cache.drop(key)

    def _fold_anew(self, store: Store) -> None:
        """All entries from state.db, which is folded from the log."""
        kept = {entry.key: entry for entry in store.cache.scan()}
        for entry in list(self._cache.scan()):
            if entry.key not in kept:
                self._cache.drop(entry.key)
        for entry in kept.values():
            if self._cache.get(entry.key) != entry:
                self._cache.put(entry)
