"""A book under random steps, faults and crashes is always as its plain model says."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test
from machine_order import Row
from machine_repairs import Repairs
from machine_rules import put_of, silent
from machine_wishes import (
    FAULTY,
    KEYS,
    NEW,
    PUT,
)

from tallybook import Book
from tallybook.book import checkpoints
from tallybook.clock import to_text
from tallybook.errors import VersionConflict
from tallybook.log.compress import compress_closed

has_jobs = precondition(lambda self: bool(self.model.jobs))
has_leases = precondition(lambda self: bool(self.taken))


class BookMachine(Repairs):
    """What can be done to a book."""

    @initialize(
        store=st.sampled_from(["sqlite", "json"]),
        is_limited=st.booleans(),
        new=st.lists(NEW, min_size=2, max_size=6),
        puts=st.lists(PUT, max_size=3),
    )
    def begin(self, store: str, is_limited: bool, new: list[Row], puts: list[Row]) -> None:
        self.make_book(store, is_limited)
        for one in new:
            self.enqueue([one], None)
        for put in puts:
            self.put(put, None)

    # the cache

    @rule(put=PUT, fault=FAULTY)
    def put(self, put: Row, fault: Any) -> None:
        def act(book: Book) -> bool:
            with suppress(VersionConflict):
                wish = put_of(put)
                book.put_entry(
                    wish.key,
                    wish.value,
                    base_version=wish.base_version,
                    ttl_s=wish.ttl_s,
                    depends_on=wish.depends_on,
                )
                return True
            return False

        self.step(act, lambda model: model.put(**put), fault)

    @rule(key=KEYS, fault=FAULTY)
    def invalidate(self, key: str, fault: Any) -> None:
        self.step(lambda book: book.invalidate(key), lambda model: model.invalidate(key), fault)

    @rule(key=KEYS, fault=FAULTY)
    def invalidate_dependents(self, key: str, fault: Any) -> None:
        self.step(
            silent(lambda book: book.invalidate_dependents(key)),
            lambda model: model.invalidate_dependents(key),
            fault,
        )

    @rule(key=KEYS, at_least=st.integers(0, 3))
    def read(self, key: str, at_least: int) -> None:
        found = self.books[self.who].read_entry(key, at_least_version=at_least)
        assert (found.state, found.value) == self.at_now().read(key, at_least)

    # the world

    @rule(seconds=st.sampled_from([1, 5, 12, 35, 65, 130]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule(seconds=st.sampled_from([-3600, -7, 7, 3600]))
    def the_wall_clock_is_moved(self, seconds: int) -> None:
        self.clock.jump(seconds)
        self.model.clocks_agree = False

    @rule(what=st.sampled_from(["reboot", "state lost", "checkpoint"]))
    def something_happens(self, what: str) -> None:
        if what == "reboot":
            self.clock.reboot(30)
            for book in self.books:
                self.die(book)
            self.books = [self.opened(), self.opened()]
        elif what == "state lost":
            for path in self.root.glob("state.db*"):
                path.unlink()
        elif self.layout.state.exists():
            checkpoints.make(self.layout, to_text(self.clock.moment().now))
            compress_closed(self.layout)
            self.lasting = []  # what a checkpoint saw is not lost


def live(examples: int, steps: int, **more: Any) -> None:
    """So many lives of a book, of so many steps each."""
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        **more,
    )
    run_state_machine_as_test(BookMachine, settings=chosen)


def test_a_book_is_always_as_its_plain_model_says() -> None:
    live(20, 40, derandomize=True)
