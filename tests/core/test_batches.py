"""Batches: what many changes at once leave is what the log says, event by event."""

from __future__ import annotations

import random
from typing import Any

import pytest
from core_steps import outcome
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tallybook import Book
from tallybook.book import Held, New, Settled, Want
from tallybook.book.folding import fold_history
from tallybook.entry import Put
from tallybook.errors import KeyConflict
from tallybook.fold import MemoryTables, apply
from tallybook.job import Job
from tallybook.log.reader import history
from tallybook.testing import FakeClock

ENDS = ["done", "done", "retry", "dead", "snooze"]


def new(dice: random.Random) -> New:
    """A job of any kind, now and then with a key that another may have."""
    wait: dict[str, Any] = dice.choice([{}, {}, {"delay_s": 5.0}])
    key = dice.choice([None, None, f"k{dice.randrange(20)}"])
    if dice.random() < 0.2:
        wait["expires_after_s"] = 40.0
    return New(dice.choice("ab"), {"n": dice.randrange(2)}, key, dice.choice([0, 0, 4]), **wait)


def settled(book: Book, dice: random.Random, job: Job) -> Settled:
    """The end of a run, with a cache write."""
    told = outcome(book, job, dice.choice(ENDS), error="é", after_s=3.0)
    return Settled(told, [Put(f"key-{dice.randrange(3)}", {"by": job.job_id})])


def live_in_batches(book: Book, clock: FakeClock, dice: random.Random, steps: int) -> None:
    """A random history of batches: turns that settle some and claim some, with late ones."""
    held: list[Job] = []
    for _ in range(steps):
        try:
            book.enqueue_many([new(dice) for _ in range(dice.randrange(8))])
        except KeyConflict:
            held = held[1:]
        dice.shuffle(held)
        ended, held = held[:4], held[4:]
        want = dice.choice([None, Want(dice.choice("vw"), dice.choice([(), ("a",)]), 30, 5)])
        held += book.turn([settled(book, dice, job) for job in ended], want).jobs
        clock.advance(dice.choice([0.1, 2, 31]))
        dice.choice([book.rescue, book.expire, lambda: None])()
        if dice.random() < 0.1:
            clock.reboot()


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**9))
def test_batches_leave_what_the_log_says_event_by_event(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    clock = FakeClock()
    with Book.open(tmp_path_factory.mktemp("batches") / "book", clock=clock) as book:
        live_in_batches(book, clock, random.Random(seed), 15)  # noqa: S311
        one_by_one = MemoryTables()
        for event, position in history(book.layout):
            apply(one_by_one, event, position.ordinal)
        assert {job.job_id: job for job in book.jobs(limit=10**6)} == one_by_one.jobs
        assert {entry.key: entry for entry in book.entries(10**6)} == one_by_one.entries
        assert numbers(one_by_one) == book.counts()
        assert fold_history(book.layout)[0].jobs == one_by_one.jobs


def numbers(tables: MemoryTables) -> dict[str, dict[str, int]]:
    """Jobs by topic and status, counted."""
    found: dict[str, dict[str, int]] = {}
    for job in tables.jobs.values():
        of_topic = found.setdefault(job.topic, {})
        of_topic[job.status] = of_topic.get(job.status, 0) + 1
    return found


def test_a_batch_that_is_refused_in_part_refuses_nothing_else(book: Book) -> None:
    book.enqueue_many([New("a", n) for n in range(3)])
    first, second, third = book.turn((), Want("w", (), 60, 3)).jobs
    book.release([Held(second.job_id, second.lease_token)], "by hand")
    turn = book.turn([Settled(outcome(book, job, "done")) for job in (first, second, third)])
    assert list(turn.refused) == [second.job_id]
    assert book.counts() == {"a": {"done": 2, "pending": 1}}


def test_the_numbers_survive_a_fold_anew(book: Book) -> None:
    book.enqueue_many([New("a", n) for n in range(5)])
    jobs = book.turn((), Want("w", (), 60, 2)).jobs
    book.turn([Settled(outcome(book, job, "dead")) for job in jobs])
    before = book.counts()
    for path in book.layout.root.glob("state.db*"):
        path.unlink()
    assert before == book.counts() == {"a": {"dead": 2, "pending": 3}}
