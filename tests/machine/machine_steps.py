"""A machine that does at random to a book, and to its plain model, all that can be done to one.

Two processes share the book: objects of their own on one folder. A step may meet a fault: a crash
at a named place, after which that process is opened anew, or a disk that is full. The log then says
how many events of the step happened, and the state must be the model's after just those.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine
from machine_book import BookModel
from machine_model import KeyTaken, TopicFull
from machine_order import LIMITED, RULES, SECOND, TOML, Row

from tallybook import Book
from tallybook.book.folding import fold_history
from tallybook.clock import from_text
from tallybook.entry import Entry
from tallybook.errors import KeyConflict, NoRoom, QueueFull
from tallybook.event import Event
from tallybook.job import Job
from tallybook.layout import Layout
from tallybook.log.reader import Position, history
from tallybook.testing import Crashed, FakeClock, Fault, audit, faults

START = FakeClock().moment().now
WHOLE = ("after_sync", "cache file")


class Steps(RuleBasedStateMachine):
    """A book, its model, and how a step is done to both. ``taken`` are all leases that were ever
    given, the newest last."""

    def __init__(self) -> None:
        super().__init__()
        shm = Path("/dev/shm")  # noqa: S108 - a quick disk, where there is one
        place = str(shm) if shm.is_dir() else None
        self.folder = Path(tempfile.mkdtemp(prefix="tally-machine-", dir=place))
        self.root = self.folder / "book"
        self.layout = Layout(self.root)
        self.clock = FakeClock()
        self.model = BookModel()
        self.labels: dict[str, str] = {}
        self.taken: list[Job] = []
        self.crashed: list[Book] = []
        self.position = Position()
        self.number = 0
        self.who = self.steps = 0
        self.is_sound = self.has_lost = False
        self.lasting: list[BookModel] = []

    def make_book(self, store: str, is_limited: bool) -> None:
        self.root.mkdir()
        self.model.rules = LIMITED if is_limited else RULES
        tables = (TOML.format(topic, **rules) for topic, rules in self.model.rules.items())
        cache = f'[cache]\nstore = "{store}"\nflush_interval_ms = 1\n'
        words = "".join([*tables, cache, "[log]\nsegment_bytes = 1024\n"])
        (self.root / "book.toml").write_text(words)
        self.books = [self.opened(), self.opened()]
        self.is_sound = True

    def opened(self) -> Book:
        book = Book.open(self.root, clock=self.clock)
        if book._cache_file:  # a flush with every change, however quick the machine is
            book._cache_file._monotonic = map(float, count()).__next__
        return book

    # one step

    def step(
        self,
        act: Callable[[Book], Any],
        plan: Callable[[BookModel], Any],
        fault: Fault | None = None,
    ) -> None:
        """Do it to the book and to the model; what both say and what both are is the same."""
        self.is_sound = False
        answer: Any = None
        error: BaseException | None = None
        with faults(*([fault] if fault else [])):
            try:
                answer = act(self.books[self.who])
            except (Crashed, KeyConflict, NoRoom, QueueFull) as raised:
                error = raised
        if isinstance(error, Crashed):
            self.die(self.books[self.who])
            self.books[self.who] = self.opened()
        self.compare(plan, answer, error, fault)
        self.steps += 1
        self.who = self.steps // 2 % 2
        self.is_sound = True

    def die(self, book: Book) -> None:
        """What the end of a process leaves of a book: no lock of SQLite's, and no clean close."""
        with suppress(sqlite3.Error):  # it was closed already, or nothing was open
            book._journal._store.connection.execute("rollback")
        self.crashed.append(book)

    def compare(
        self,
        plan: Callable[[BookModel], Any],
        answer: Any,
        error: BaseException | None,
        fault: Fault | None,
    ) -> None:
        before, seen = self.model, self.new_events()
        after = self.at_now(seen)
        states = [after.copy()]
        try:
            expected, is_refused = plan(after), False
            states += [state for _, state in after.told]
        except (KeyTaken, TopicFull):
            expected, is_refused = None, True
        told = [] if is_refused else [event for event, _ in after.told]
        if isinstance(error, Crashed | NoRoom):
            assert seen == told[: len(seen)], f"the log tells {seen}, not a part of {told}"
            assert seen == told or fault.name not in WHOLE, "a synced event is lost"
            assert isinstance(error, Crashed) or not seen, "what failed has changed the book"
        else:
            assert is_refused == isinstance(error, KeyConflict | QueueFull), "not refused"
            assert seen == told, f"the log tells {seen}, not {told}"
            assert is_refused or self.named(answer) == expected, "the answer is another"
        self.model = states[len(seen)] if seen or self.is_woken() else before
        self.lasting = states[: len(seen)]
        self.check()

    def at_now(self, seen: list[tuple[str, str]] | None = None) -> BookModel:
        moment = self.clock.moment()
        wall = (moment.now - START) // timedelta(microseconds=1)
        return self.model.at(wall, moment.boot_us, moment.boot_id, seen or [])

    def is_woken(self) -> bool:
        """Whether the log knows of this boot."""
        return self.position.boot_id == self.clock.moment().boot_id

    def named(self, answer: Any) -> Any:
        """An answer with the labels of its jobs in place of their ids."""
        if isinstance(answer, list):
            return [self.named(one) for one in answer]
        if isinstance(answer, tuple):
            return tuple(self.named(one) for one in answer)
        return self.labels.get(answer, answer) if isinstance(answer, str) else answer

    def new_events(self) -> list[tuple[str, str]]:
        """What the log tells of the last step: the names of its events and what they are about."""
        found = []
        for event, position in history(self.layout, self.position):
            self.position = position
            if event.name == "job.enqueued":
                self.labels[event["job_id"]] = event["enqueued_from"]
            if not event.name.startswith("log."):
                found.append((event.name, self.about(event)))
        return found

    def about(self, event: Event) -> str:
        if event.get("key"):
            return str(event["key"])
        job_id = event.get("job_id")
        named = event.get("topic") or event.get("plan") or event.get("worker")
        return self.labels[job_id] if job_id else str(named)

    # the same

    def check(self) -> None:
        """The state of the acting process is the model's."""
        book = self.books[self.who]
        jobs = book.jobs(limit=1000)
        known = {(job.job_id, job.lease_token) for job in self.taken}
        self.taken += [
            job for job in jobs
            if job.status == "leased" and (job.job_id, job.lease_token) not in known
        ]  # fmt: skip
        self.require(jobs, book.entries(1000))
        found = [held.lock for held in book.locks()]
        assert book.counts() == self.model.counts()
        assert {topic for topic, now in book.topics().items() if now == "paused"} == (
            self.model.paused
        )
        held = {lock.resource: (self.labels[lock.job_id], lock.lease_token) for lock in found}
        assert held == self.model.locks()
        if self.is_woken():
            waits, due = self.at_now().next_due(), book.next_due_s()
            assert (due is None) == (waits is None)
            assert due is None or waits is None or abs(due - waits / SECOND) < 0.001

    def require(self, jobs: list[Job], entries: list[Entry]) -> None:
        rows = {self.labels[job.job_id]: shown_job(job) for job in jobs}
        wrong = unlike(rows, self.model.jobs, self.model_job)
        kept = {entry.key: self.shown_entry(entry) for entry in entries}
        wrong += unlike(kept, self.model.entries, model_entry)
        assert wrong == [], wrong

    def teardown(self) -> None:
        """Close the book; what is on disk is sound, and the log alone folds to the model."""
        for book in getattr(self, "books", []):
            book.close()
        for book in self.crashed:
            book._journal._store.connection.close()
        try:
            if self.is_sound:
                wrong = [told for told in audit(self.root) if not self.is_known_loss(told)]
                assert wrong == [], wrong
                tables, _ = fold_history(self.layout)
                self.require(list(tables.jobs.values()), list(tables.entries.values()))
        finally:
            shutil.rmtree(self.folder)

    def is_known_loss(self, told: str) -> bool:
        """Whether the log tells, as it must, of a line that the machine took from it."""
        return self.has_lost and told.startswith("tells that seq ")

    def model_job(self, job: Row) -> Row:
        """The columns that ``shown_job`` gives, of a job of the model."""
        hidden = {"created", "expires_after", "expires_wall", "delay", "ended", "holds"}
        if job["status"] == "pending":
            return without(job, hidden) | {"waits_for": self.model.waits_for(job)}
        closed = {} if job["status"] == "leased" else {"expires": 0}
        return without(job, hidden | {"due", "at", "shown"}) | closed

    def shown_entry(self, entry: Entry) -> Row:
        job = self.labels[entry.job_id] if entry.job_id else None
        return {
            "value": entry.value, "version": entry.version, "ttl": entry.ttl_s,
            "depends": entry.depends_on, "job": job,
        }  # fmt: skip


def shown_job(job: Job) -> Row:
    """The columns of a job that a model knows, in its words; those of a state that it is in."""
    is_open = job.status in ("pending", "leased")
    shown = {
        "topic": job.topic, "payload": job.payload, "status": job.status,
        "priority": job.priority, "attempts": job.attempt_count, "rescues": job.rescue_count,
        "token": job.lease_token, "cancel": bool(job.cancel_requested_at),
        "key": None if job.idempotency_key == job.job_id else job.idempotency_key,
        "error": job.error_type, "result": job.result_json and "fine", "holder": job.locked_by,
        "order": job.ordering_key, "res": job.resource, "lease": job.lease_boot_us,
        "expires": job.expire_boot_us if is_open else 0,
    }  # fmt: skip
    if job.status == "pending":
        shown |= {"due": job.due_boot_us, "at": wall_us(job.due_at)}
        shown |= {"shown": wall_us(job.next_attempt_at), "waits_for": job.waits_for}
    return shown


def without(row: Row, names: set[str]) -> Row:
    return {name: value for name, value in row.items() if name not in names}


def model_entry(entry: Row) -> Row:
    return {name: entry[name] for name in ("value", "version", "ttl", "depends", "job")}


def wall_us(text: str | None) -> int:
    """µs since the start of the fake clock; 0 for none."""
    return (from_text(text) - START) // timedelta(microseconds=1) if text else 0


def unlike(rows: dict[str, Row], model: dict[str, Row], shown: Callable[[Row], Row]) -> list[str]:
    """Where rows are not as the model's, a line each."""
    wanted = {name: shown(row) for name, row in model.items()}
    found = []
    for name in rows | wanted:
        row, due = rows.get(name, {}), wanted.get(name, {})
        fields = [field for field in row | due if row.get(field) != due.get(field)]
        found += [f"{name}: {f} is {row.get(f)!r}, not {due.get(f)!r}" for f in fields]
    return found
