"""The journal: the one road by which a book changes.

    take the lock → BEGIN IMMEDIATE → replay what the log has beyond the applied position
    → decide (pure) → apply to the tables → append the events in one write → fdatasync
    → COMMIT → release

A crash before the sync leaves nothing; after it, the next change replays the events.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from tallybook.book import aside as asides
from tallybook.book import news, opening, withheld
from tallybook.book.files import StateFiles
from tallybook.book.folding import fold_anew, fold_what_is_left
from tallybook.book.gathering import Decide, Gathering, Ticket
from tallybook.book.reading import Reading
from tallybook.book.store import Store
from tallybook.clock import Clock, Moment
from tallybook.errors import FoldRefused, NotNow, TallybookError
from tallybook.event import Event
from tallybook.fold import apply
from tallybook.job import Job
from tallybook.layout import Layout
from tallybook.log.batch import Batch
from tallybook.log.lock import LogLock
from tallybook.log.loss import lost_end
from tallybook.log.reader import Position, has_more
from tallybook.log.writer import Log, Node
from tallybook.settings import LogSettings

log = logging.getLogger("tallybook.book")


class Journal:
    """The log and the state of one book, opened for changes.

    Threads share a sync: while one waits for the disk, the changes that others ask for gather and
    go into the next transaction together.
    """

    def __init__(
        self, layout: Layout, settings: LogSettings, clock: Clock, node: Node, withholds: bool
    ) -> None:
        self._layout = layout
        self._withholds = withholds
        self._clock = clock
        self._lock = LogLock(layout.log, settings.lock_wait_s)
        self._log = Log(layout, settings, node)
        self._mutex = threading.RLock()
        self._gathering = Gathering(self._do)
        self._wake_path = str(layout.wake)
        self._reading = Reading(self.begin_reading, self.end_reading)
        self._passed: Position | None = None
        with self._lock, opening.told(layout.state):
            self._open()

    def hold(self) -> AbstractContextManager[None]:
        """Hold the lock of the log: nobody changes the book meanwhile."""
        return self._lock

    def certain_end(self) -> Position | None:
        """Where the log ends, where it is certain without reading that nothing came since the last
        change of this process; asked in vain only once after each."""
        with self._mutex:
            if self._store.end is self._passed:
                return None
            end = self._store.certain_end()
            self._passed = None if end else self._store.end
            return end

    def reading(self) -> AbstractContextManager[Store]:
        """The state, for reading; threads take turns."""
        return self._reading

    def begin_reading(self) -> Store:
        """The state as far as the log goes, until ``end_reading``."""
        if self._files.are_replaced() or self._store.is_behind:
            with self._lock, self._mutex:
                self._follow()
                self._replay()
        self._mutex.acquire()
        return self._store

    def end_reading(self, error: BaseException | None) -> None:
        """The state was read, or could not be: ``error`` says why. Raises NotNow where it was
        damaged or deleted meanwhile."""
        self._mutex.release()
        if not isinstance(error, sqlite3.DatabaseError):
            return
        with self._lock:
            self._mend(error)
        raise NotNow(
            f"{self._layout.state} was damaged or deleted and is folded anew: ask again"
        ) from error

    @contextmanager
    def reading_alone(self) -> Iterator[Store]:
        """The state, for reading, while nobody changes the book."""
        with self._lock, self._mutex:
            self._follow()
            self._replay()
            yield self._store

    def change(self, decide: Decide) -> list[Event]:
        """Do what ``decide`` says of the current state; returns the events once they are on disk.

        Nothing is changed where ``decide`` returns nothing or raises.
        """
        return self.turn(decide)[0]

    def turn(self, decide: Decide) -> tuple[list[Event], list[Job]]:
        """As ``change``; returns also the jobs that it leased."""
        ticket = Ticket(decide)
        self._gathering.join(ticket)
        if ticket.error:
            raise ticket.error
        return ticket.made, ticket.leased

    def _do(self, tickets: list[Ticket]) -> None:
        """Do changes in one transaction and with one sync."""
        try:
            with self._lock, self._mutex:
                self._follow()
                self._change_or_mend(tickets)
                if self._store.is_behind and self._withholds:
                    withheld.refuse(tickets, self._layout.state)
        except BaseException as error:
            for ticket in tickets:
                ticket.error = ticket.error or error
            if not isinstance(error, TallybookError):
                raise
        made = (event for ticket in tickets for event in ticket.made)
        news.tell(self._wake_path, made, self._store.took_news())

    def _change_or_mend(self, tickets: list[Ticket]) -> None:
        try:
            self._change_all(tickets)
        except (sqlite3.DatabaseError, TallybookError) as error:
            self._mend(error)  # nothing is in the log: it is written last
            for ticket in tickets:
                ticket.made, ticket.leased, ticket.error = [], [], None
            self._change_all(tickets)

    def _mend(self, error: sqlite3.DatabaseError | TallybookError) -> None:
        """Go on where files of the state were deleted meanwhile; fold a damaged one anew.

        Raises ``error`` where it is something else.
        """
        cause = error.__cause__ if isinstance(error, TallybookError) else error
        if not isinstance(cause, sqlite3.DatabaseError):
            raise error
        if self._files.are_replaced():
            with self._mutex:
                self._follow()
            return
        if not opening.is_damage(cause):
            raise error
        log.warning("%s is damaged (%s): it is folded anew", self._layout.state, error)
        with self._mutex, opening.told(self._layout.state):
            self._files.abandon()
            self._store.connection.close()
            self._layout.state.unlink(missing_ok=True)
            self._open()

    def _change_all(self, tickets: list[Ticket]) -> None:
        store = self._store
        try:
            store.begin()
            try:
                is_done = self._change(tickets)
            except BaseException:
                store.roll_back()
                raise
            (store.commit if is_done else store.roll_back)()
        except (sqlite3.OperationalError, OSError) as error:
            raise opening.as_ours(error, self._layout.state) from error

    def catch_up(self) -> None:
        """Apply what the log has beyond the state: the COMMIT of another process failed."""
        with self._mutex:
            position = self._store.position()
        if has_more(self._layout, position):
            with self._lock, self._mutex:
                self._follow()
                with opening.told(self._layout.state):
                    self._caught_up()

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._lock.is_closed

    def close(self) -> None:
        """Close state.db under the lock, so that one process alone checkpoints its WAL."""
        if self._lock.is_closed:
            return
        with self._lock, self._mutex:
            self._store.connection.close()
            self._log.close()
        self._lock.close()

    def _change(self, tickets: list[Ticket]) -> bool:
        """Do changes in the open transaction; False where a segment was about to be opened, but
        there is nothing to write into it."""
        store, before, moment = self._store, self._catch_up(), self._clock.moment()
        batch, begun = self._log.begin(before, moment)
        for event, ordinal in begun:
            apply(store, event, ordinal)
        opened = len(batch.data)
        for ticket in tickets:
            self._decide(ticket, batch, moment)
        if len(batch.data) == opened:
            return not opened
        store.set_position(batch.end)
        self._log.write(batch, before)
        return True

    def _decide(self, ticket: Ticket, batch: Batch, moment: Moment) -> None:
        store, made = self._store, ticket.made
        try:
            events = ticket.decide(store, moment)
        except TallybookError as error:
            ticket.error = error
            return
        for event in events:
            stamped, ordinal = batch.add(event)
            apply(store, stamped, ordinal)
            made.append(stamped)
        leased = (store.job(event["job_id"]) for event in made if event.name == "job.leased")
        ticket.leased = [job for job in leased if job]

    def _catch_up(self) -> Position:
        end = self._store.certain_end()
        if end:
            return end
        self._store.forget()
        start = position = self._store.position()
        lost = withheld.Lost()
        for event, position in self._log.beyond(start):
            apply(self._store, event, position.ordinal)
            lost.note(event)
        lost.tell()
        if position != start:
            self._store.set_position(position)
        return position

    # a state that fits the log

    def _caught_up(self) -> Position:
        with self._store.transaction():
            return self._catch_up()

    def _open(self) -> None:
        """Open the state, folded anew where it is lost or ahead of the log, and catch up."""
        asides.sweep(self._layout.state)
        store, known = opening.open_fitting(self._layout)
        if store is None and known.writer:
            self._store = fold_what_is_left(self._layout, self._clock.moment().wall())
        else:
            self._store = store or fold_anew(self._layout)
        try:
            end = self._caught_up()
        except (sqlite3.DatabaseError, FoldRefused) as error:
            if store is None or isinstance(error, sqlite3.OperationalError):
                raise
            log.warning("%s does not fit the log (%s): folded anew", self._layout.state, error)
            store.connection.close()
            self._store = fold_anew(self._layout)
            end = self._caught_up()
        self._store.ends_at = self._log.ends_at
        self._files = StateFiles(self._layout.state)
        if self._withholds:
            self._store.sync_commits()
        lost = lost_end(self._layout, end, known)
        if lost:
            self._log.renew(lost)

    def _follow(self) -> None:
        """Where files of state.db were deleted or replaced, go on with the state that counts."""
        if self._files.are_replaced():
            self._files.abandon()
            self._store.connection.close()
            with opening.told(self._layout.state):
                self._open()

    def _replay(self) -> None:
        """Apply what a failed COMMIT left out. Raises NoRoom where that fails again."""
        if self._store.is_behind:
            with opening.told(self._layout.state):
                self._caught_up()
        if self._store.is_behind:
            raise opening.lagging(self._layout.state)
