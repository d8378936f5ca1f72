"""The journal: the one road by which a book changes.

    take the lock → BEGIN IMMEDIATE → replay what the log has beyond the applied position
    → decide (pure) → apply to the tables → append the events in one write → fdatasync
    → COMMIT → release

A crash before the sync leaves nothing; after it, the next change replays the events.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tallybook.book import store as stores
from tallybook.book.store import Store
from tallybook.clock import Clock, Moment
from tallybook.errors import TallybookError
from tallybook.event import Event
from tallybook.fold import MemoryTables, apply
from tallybook.layout import Layout
from tallybook.log.lock import LogLock
from tallybook.log.reader import Position, history
from tallybook.log.verify import latest_mark
from tallybook.log.writer import Batch, Log, Node
from tallybook.settings import LogSettings

Decide = Callable[[Store, Moment], Sequence[Event]]


class Journal:
    """The log and the state of one book, opened for changes."""

    def __init__(self, layout: Layout, settings: LogSettings, clock: Clock, node: Node) -> None:
        self._layout = layout
        self._clock = clock
        self._lock = LogLock(layout.log, settings.lock_wait_s)
        self._log = Log(layout, settings, node)
        self._mutex = threading.RLock()
        with self._lock.held():
            self._open()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the lock of the log: nobody changes the book meanwhile."""
        with self._lock.held():
            yield

    @contextmanager
    def reading(self) -> Iterator[Store]:
        """The state, for reading; threads take turns."""
        if self._is_replaced():
            with self._lock.held(), self._mutex:
                self._follow()
        with self._mutex:
            yield self._store

    def change(self, decide: Decide) -> list[Event]:
        """Do what ``decide`` says of the current state; returns the events once they are on disk.

        Nothing is changed where ``decide`` returns nothing or raises.
        """
        with self._lock.held(), self._mutex:
            self._follow()
            try:
                with self._store.transaction():
                    return self._change(decide)
            except _NothingToDo:
                return []
            except sqlite3.OperationalError as error:
                raise TallybookError(
                    f"{self._layout.state}: {error}; nothing was changed"
                ) from error

    def close(self) -> None:
        """Close state.db under the lock, so that one process alone checkpoints its WAL."""
        if self._lock.is_closed:
            return
        with self._lock.held(), self._mutex:
            self._store.connection.close()
            self._log.close()
        self._lock.close()

    def _change(self, decide: Decide) -> list[Event]:
        before = self._catch_up()
        moment = self._clock.moment()
        batch = self._opened_batch(before, moment)
        opening = len(batch.data)
        made = [self._add(batch, event) for event in decide(self._store, moment)]
        if made:
            self._store.set_position(batch.end)
            self._log.write(batch, before)
        elif opening:
            raise _NothingToDo
        return made

    def _opened_batch(self, before: Position, moment: Moment) -> Batch:
        opened = None
        for batch, event, ordinal in self._log.begin(before, moment):
            opened = batch
            apply(self._store, event, ordinal)
        if opened:
            return opened
        batch = self._log.batch(before, moment)
        for event in self._log.repairs():
            self._add(batch, event)
        return batch

    def _add(self, batch: Batch, event: Event) -> Event:
        stamped, ordinal = batch.add(event, batch.end.writer)
        apply(self._store, stamped, ordinal)
        return stamped

    def _catch_up(self) -> Position:
        start = position = self._store.position()
        for event, position in self._log.beyond(start):
            apply(self._store, event, position.ordinal)
        if position != start:
            self._store.set_position(position)
        return position

    # a state that fits the log

    def _open(self) -> None:
        """Open the state, folded anew where it is lost or ahead of the log, and catch up."""
        store = stores.open_store(self._layout.state)
        lost = store.position() if store else Position()
        if store and stores.is_ahead(self._layout, lost):
            store.connection.close()
            store = None
        self._store = store or fold_anew(self._layout)
        self._inode = self._layout.state.stat().st_ino
        with self._store.transaction():
            end = self._catch_up()
        self._note_lost_end(end, lost)

    def _is_replaced(self) -> bool:
        try:
            return self._layout.state.stat().st_ino != self._inode
        except FileNotFoundError:
            return True

    def _follow(self) -> None:
        """Where state.db was deleted or replaced under us, go on with the one that counts."""
        if self._is_replaced():
            self._store.connection.close()
            self._open()

    def _note_lost_end(self, end: Position, state: Position) -> None:
        mark = latest_mark(self._layout)
        marks = [state] + ([Position(mark.writer, mark.seq)] if mark else [])
        for lost in marks:
            if lost.writer == end.writer and lost.seq > end.seq:
                self._log.renew("shortened", lost, end.seq + 1)
                return


class _NothingToDo(Exception):
    """A segment was about to be opened, but there is nothing to write into it."""


def fold_anew(layout: Layout) -> Store:
    """A new state.db folded from the whole log; under the lock."""
    tables, position = fold_history(layout)
    return stores.write_anew(layout.state, tables, position)


def fold_history(layout: Layout) -> tuple[MemoryTables, Position]:
    """The whole log folded in memory. Raises LogDamaged or FoldRefused with the place."""
    tables, position = MemoryTables(), Position()
    for event, position in history(layout):
        apply(tables, event, position.ordinal)
    return tables, position
