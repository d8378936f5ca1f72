"""Book: enqueue, claim, extend, settle. Every change is one turn of the journal."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from tallybook import layout as layouts
from tallybook import payload as payloads
from tallybook.book import ageing, bounds, changes, locking, repairing, rescuing
from tallybook.book.asking import Held, New, Receipt, Settled, Turn, Want
from tallybook.book.caching import Write
from tallybook.book.entries import CachedBook
from tallybook.book.gathering import Decide
from tallybook.book.journal import Journal
from tallybook.book.limits import Limits
from tallybook.book.repairing import Step
from tallybook.book.store import Store
from tallybook.book.view import ReadBook
from tallybook.clock import Clock
from tallybook.errors import LeaseLost, QueueFull
from tallybook.event import Event
from tallybook.job import Job
from tallybook.layout import Layout
from tallybook.log import filesystem
from tallybook.log.durable import make_folder
from tallybook.log.reader import Position
from tallybook.outcome import Outcome
from tallybook.settings import Settings
from tallybook.settings import load as load_settings


class Book(CachedBook):
    """One node's queue, cache and log. Open it once a process; threads may share it."""

    def __init__(self, layout: Layout, settings: Settings, clock: Clock | None) -> None:
        super().__init__(layout, settings, clock)
        self._journal = Journal(layout, settings.log, self._clock, self.node, settings.withholds)
        self._dice = random.Random().random  # noqa: S311 - it spreads retries, it guards nothing

    @classmethod
    def open(
        cls, path: str | Path = "book", *, create: bool = True, clock: Clock | None = None
    ) -> Book:
        """Open the book at ``path``, made where there is none unless ``create`` is False.

        Replays what a crash left and folds a lost state.db anew. Raises BadInput for a path that
        is no book, or where none could be kept (a network or a read-only file system), LogDamaged
        or FoldRefused where the log cannot be folded.
        """
        root, layout = Path(path), Layout(Path(path))
        layouts.require_place(root, create)
        settings = load_settings(layout.settings)
        filesystem.require_fit(root, settings.node.allow_file_system)
        if not layouts.is_book(root):
            make_folder(layout.log, layouts.FOLDER_MODE)
            layout.make()
        return cls(layout, settings, clock)

    @classmethod
    def read(cls, path: str | Path, *, clock: Clock | None = None) -> ReadBook:
        """Open the book at ``path`` for questions alone. Raises BadInput where there is none."""
        return ReadBook(path, clock)

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
        expires_after_s: float | None = None,
        timeout_s: float | None = None,
        ordering_key: str | None = None,
        resource: str | None = None,
        keep_latest: bool = False,
    ) -> Receipt:
        """Enqueue a job; once this returns, the job is on disk.

        With an ``idempotency_key`` that a job of this topic has: the same payload gives that job,
        another payload raises KeyConflict. Without one the job's own id is its key. Jobs of a
        higher ``priority`` are claimed first. After ``expires_after_s`` a job that is not done is
        dead. A run longer than ``timeout_s`` is stopped and counts as a failed attempt.

        Jobs of one ``ordering_key`` of a topic run one after the other in the order in which they
        came; with ``keep_latest`` this job takes the place of those that are pending, which the
        receipt names. Of the jobs of one ``resource``, over all topics, at most one runs.

        Raises BadInput for what cannot be kept, QueueFull where the topic has as many pending as
        it may, NoRoom where less than the reserve is free on the disk.
        """
        new = New(
            topic, payload, idempotency_key, priority, delay_s, next_attempt_at, correlation_id,
            enqueued_from, expires_after_s, timeout_s, ordering_key, resource, keep_latest,
        )  # fmt: skip
        return self.enqueue_many([new])[0]

    def enqueue_many(self, new: Sequence[New]) -> list[Receipt]:
        """Enqueue jobs with one sync: all of them or, where one raises, none."""
        checked = [job.checked(self.settings) for job in new]
        self._reserve.require()
        try:
            events = self._journal.change(
                lambda store, moment: changes.enqueue(store, moment, checked, self.settings)
            )
        except QueueFull as error:
            error.backlog_s = bounds.backlog_s(self.layout, self.moment(), self.counts())
            raise
        return changes.receipts(events)

    def claim(
        self, worker: str, *, topics: Sequence[str] = (), lease_s: float = 60.0
    ) -> Job | None:
        """Lease the next due job to ``worker`` for ``lease_s``; None where none is due."""
        found = self.claim_many(Want(worker, topics, lease_s))
        return found[0] if found else None

    def claim_many(self, want: Want) -> list[Job]:
        """Lease due jobs by priority, due time and age, at most ``want.limit``."""
        with self._reading() as store:
            moment = self._clock.moment()
            rooms = Limits(store, moment, self.settings.limited, want.topics).rooms()
            if store.knows_boot(moment) and not store.queue.ready(moment, want.topics, 1, rooms):
                return []
        return self.turn((), want).jobs

    def settle(self, outcome: Outcome, puts: Sequence[Write] = ()) -> list[Event]:
        """End the lease with its outcome; the cache writes of a done job become events with it.

        Raises LeaseLost where the lease is over: nothing is changed but the refusal is logged.
        """
        turn = self.turn([Settled(outcome, puts)])
        for job_id, reason in turn.refused.items():
            raise LeaseLost(f"job {job_id}: {reason}; this result is dropped")
        return turn.events

    def turn(self, settled: Sequence[Settled], want: Want | None = None) -> Turn:
        """Settle runs and claim what is due next, with one sync for all; what the settles let
        through may be claimed at once."""
        settings, dice = self.settings, self._dice
        decide = self._telling(
            lambda store, moment: changes.turn(store, moment, settled, want, settings, dice)
        )
        events, leased = self._journal.turn(decide)
        self._flush_if_due()
        refused = {e["job_id"]: e["reason"] for e in events if e.name == "job.settle_refused"}
        return Turn(events, refused, leased)

    def extend(self, leases: Sequence[Held], worker: str, lease_s: float) -> list[Held]:
        """Keep leases for another ``lease_s``; returns those that are lost, each logged."""
        events = self._journal.change(
            lambda store, moment: changes.extend(store, moment, leases, worker, lease_s)
        )
        told = zip(leases, events, strict=True)
        return [held for held, event in told if event.name == "job.settle_refused"]

    def release(self, leases: Sequence[Held], reason: str) -> list[Event]:
        """Hand back leases uncounted; those that are over are passed over."""
        return self._change_leases(
            lambda store, moment: changes.release(store, moment, leases, reason)
        )

    def release_by_hand(self, job: Job, reason: str) -> bool:
        """Take the lease of a job from its holder, logged with the reason; False where it has
        ended meanwhile. Whatever the holder settles from now on is refused."""
        held = Held(job.job_id, job.lease_token)
        events = self._change_leases(lambda store, _: changes.release_by_hand(store, held, reason))
        return bool(events)

    def steer(self, rule: str, job_ids: Sequence[str], reason: str) -> list[Event]:
        """Requeue, discard or cancel jobs with one sync; those that are in no state for it are
        passed over. Returns the events: at most one a job."""
        return self._change_leases(lambda store, _: changes.steer(store, rule, job_ids, reason))

    def repair(self, plan: str, steps: Sequence[Step], reason: str) -> list[Event]:
        """Do those steps of a plan that still fit, with one sync; the last event names them."""
        self._reserve.require()
        settings = self.settings
        return self._change(self._telling(lambda store, moment: repairing.repaired(
            store, moment, plan, steps, settings, reason)))  # fmt: skip

    def pause(self, topic: str, reason: str) -> bool:
        """Let nobody claim jobs of ``topic``; what runs goes on. False where it was so before."""
        return self._switch(topic, "paused", reason)

    def resume(self, topic: str, reason: str) -> bool:
        """Let jobs of ``topic`` be claimed again. False where they could be before."""
        return self._switch(topic, "active", reason)

    def _switch(self, topic: str, status: str, reason: str) -> bool:
        name = payloads.checked_topic(topic)
        events = self._journal.change(lambda store, _: changes.switch(store, name, status, reason))
        return bool(events)

    def rescue(self, limit: int = 100) -> list[Event]:
        """Take jobs from holders whose lease is over; returns the events."""
        with self._reading() as store:
            moment = self._clock.moment()
            if store.knows_boot(moment) and not store.queue.late(moment, 1):
                return []
        return self._change_leases(
            lambda store, moment: rescuing.late(store, moment, limit, self.settings, self._dice)
        )

    def expire(self, limit: int = ageing.BATCH) -> list[Event]:
        """End pending jobs whose ``expires_after`` has passed; returns the events."""
        with self._reading() as store:
            moment = self._clock.moment()
            if store.knows_boot(moment) and not store.queue.expired(moment, 1):
                return []
        return self._journal.change(
            lambda store, moment: ageing.expired(store, moment, self.settings, limit)
        )

    def prune(self, limit: int = 1000, *, dry_run: bool = False) -> list[Job]:
        """Take final jobs older than their topic keeps them out of the tables, at most ``limit``,
        oldest first; the log keeps them. Returns those that went, or would with ``dry_run``."""
        return ageing.prune(self, limit, dry_run)

    def aged(self, after: int, limit: int = ageing.BATCH) -> tuple[list[Job], int]:
        """Jobs that may be pruned, from behind the ``after``-th event on, and how far was looked;
        0 at the end."""
        with self._reading() as store:
            return ageing.aged(store, self._clock.moment(), self.settings, after, limit)

    def prune_these(self, jobs: Sequence[Job]) -> list[Event]:
        """Prune those of ``jobs`` that still may go, in one change; returns the events."""
        return self._journal.change(
            lambda store, moment: ageing.pruned(store, moment, jobs, self.settings)
        )

    def rescue_of(
        self, worker: str, stopped: Mapping[str, Mapping[str, Any]] | None = None
    ) -> list[Event]:
        """Log that ``worker`` died and take its jobs at once; returns the events.

        The caller makes sure that it is dead. ``stopped`` says by job id which runs it ended
        itself for, if it did.
        """
        return self._change_leases(
            lambda store, moment: rescuing.bury(
                store, moment, worker, self.settings, self._dice, stopped or {}
            )
        )

    def record(self, event: Event) -> Event:
        """Write an event that says something of no single job, such as ``worker.started``."""
        return self._journal.change(lambda *_: [event])[0]

    def catch_up(self) -> None:
        """Apply what the log has beyond the state: the COMMIT of another process failed."""
        self._journal.catch_up()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the lock of the log: nobody changes the book meanwhile."""
        with self._journal.hold():
            yield

    def close(self) -> None:
        """Close the book; it may be opened again."""
        if not self._journal.is_closed:
            self._flush()
        self._journal.close()

    def _telling(self, decide: Decide) -> Decide:
        """``decide`` with what the log says of the locks that come and go with its leases."""
        settings = self.settings
        return lambda store, moment: locking.told(store, moment, settings, decide(store, moment))

    def _change_leases(self, decide: Decide) -> list[Event]:
        """Do a change of leases; its events, those of locks left out."""
        events = self._journal.change(self._telling(decide))
        return [event for event in events if not event.name.startswith("lock.")]

    def _change(self, decide: Decide) -> list[Event]:
        events = self._journal.change(decide)
        self._flush_if_due()
        return events

    def _certain_end(self) -> Position | None:
        return self._journal.certain_end()

    def _reading_alone(self) -> AbstractContextManager[Store]:
        return self._journal.reading_alone()

    def _reading(self) -> AbstractContextManager[Store]:
        return self._journal.reading()
