"""Resources: at most one leased job each, over all topics, and free when the lease is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from core_steps import claim, events, job_of, outcome
from test_claiming import MOST_STEPS, steps_of
from test_order import due

from tallybook import Book
from tallybook.book import Held, New, Settled, Want
from tallybook.errors import LeaseLost
from tallybook.event import Event
from tallybook.job import Job
from tallybook.testing import FakeClock, audit


def crowd(book: Book, resource: str = "printer", **fields: Any) -> list[str]:
    """Three jobs of two topics that need one resource."""
    new = [New(topic, n, resource=resource, **fields) for n, topic in enumerate("aba")]
    return [receipt.job_id for receipt in book.enqueue_many(new)]


def of_locks(book: Book) -> list[tuple[Any, ...]]:
    """What the log says of locks."""
    names = ("event", "resource", "job_id", "lease_token", "reason")
    return [
        tuple(event.get(name) for name in names)
        for event in events(book)
        if event["event"].startswith("lock.")
    ]


def test_one_job_at_most_is_leased_of_a_resource_over_all_topics(book: Book) -> None:
    first, second, third = crowd(book)
    assert [job.job_id for job in book.turn((), Want("w", (), 60, 10)).jobs] == [first]
    assert book.claim("w2") is None
    book.enqueue("b", "free")
    assert [job.payload for job in book.turn((), Want("w", (), 60, 10)).jobs] == ["free"]
    assert [held.lock.job_id for held in book.locks()] == [first]
    assert {job_of(book, one).attempt_count for one in (second, third)} == {0}


def done(book: Book, job: Job, clock: FakeClock) -> None:
    book.settle(outcome(book, job))


def retried(book: Book, job: Job, clock: FakeClock) -> None:
    book.settle(outcome(book, job, "retry", after_s=5.0))


def died(book: Book, job: Job, clock: FakeClock) -> None:
    book.settle(outcome(book, job, "dead"))


def snoozed(book: Book, job: Job, clock: FakeClock) -> None:
    book.settle(outcome(book, job, "snooze", after_s=5.0))


def released(book: Book, job: Job, clock: FakeClock) -> None:
    book.release_by_hand(job, "by hand")


def cancelled(book: Book, job: Job, clock: FakeClock) -> None:
    book.steer("cancel", [job.job_id], "by hand")
    book.release([Held(job.job_id, job.lease_token)], "stops")


def ran_out(book: Book, job: Job, clock: FakeClock) -> None:
    clock.advance(61)
    book.rescue()


def rebooted(book: Book, job: Job, clock: FakeClock) -> None:
    clock.reboot()
    book.enqueue("c", "the first change after a boot ends every lease")
    book.rescue()


def worker_died(book: Book, job: Job, clock: FakeClock) -> None:
    book.rescue_of("w1")


def late(book: Book, job: Job, clock: FakeClock) -> None:
    clock.advance(61)
    with pytest.raises(LeaseLost):
        book.settle(outcome(book, job))


@pytest.mark.parametrize(
    "end",
    [done, retried, died, snoozed, released, cancelled, ran_out, rebooted, worker_died, late],
)
def test_a_lock_ends_with_the_lease_in_whatever_way_that_ends(
    book: Book, clock: FakeClock, end: Callable[[Book, Job, FakeClock], None]
) -> None:
    first, *_ = crowd(book)
    job = claim(book)
    clock.advance(2)
    end(book, job, clock)
    assert book.locks() == []
    assert claim(book).resource == "printer"
    acquired, ended, *_ = of_locks(book)
    assert acquired == ("lock.acquired", "printer", first, 1, None)
    assert ended[:4] == ("lock.released", "printer", first, 1)
    (held_ms, *_) = [e["duration_ms"] for e in events(book) if e["event"] == "lock.released"]
    assert held_ms >= 2000


def test_an_extension_keeps_the_lock_and_moves_its_end(book: Book, clock: FakeClock) -> None:
    crowd(book)
    job = claim(book)
    before = book.locks()[0]
    clock.advance(40)
    book.extend([Held(job.job_id, job.lease_token)], "w1", 60)
    clock.advance(40)
    assert book.rescue() == []
    (after,) = book.locks()
    assert after.lock == before.lock and after.held_ms == 80_000
    assert (after.locked_until or "") > (before.locked_until or "")


def test_the_next_of_a_resource_comes_by_priority_then_age(book: Book, clock: FakeClock) -> None:
    first, second, third = crowd(book)
    urgent = book.enqueue("b", "urgent", resource="printer", priority=5).job_id
    found = []
    while job := book.claim("w1"):
        found.append(job.job_id)
        book.settle(outcome(book, job))
    assert found == [urgent, first, second, third]


def test_a_topic_that_nobody_takes_or_that_is_paused_keeps_no_resource_from_others(
    book: Book,
) -> None:
    first, second, third = crowd(book)
    assert [job.job_id for job in book.turn((), Want("w", ("b",))).jobs] == [second]
    book.settle(outcome(book, job_of(book, second)))
    book.pause("a", "by hand")
    urgent = book.enqueue("b", 1, resource="printer").job_id
    assert due(book) == [urgent]
    assert job_of(book, first).waits_for is None and job_of(book, third).waits_for == "resource"


def test_a_job_that_waits_for_an_hour_keeps_nobody_from_a_resource(
    book: Book, clock: FakeClock
) -> None:
    later = book.enqueue("a", "later", resource="printer", delay_s=50, priority=9).job_id
    book.enqueue("a", "last", resource="printer", next_attempt_at=clock.moment().now, priority=-1)
    now = book.enqueue("a", "now", resource="printer").job_id
    assert due(book) == [now]
    clock.advance(50)
    assert due(book) == [later]


def test_a_resource_waits_for_its_turn_in_an_ordering_key_first(book: Book) -> None:
    wish = {"ordering_key": "k", "resource": "printer"}
    first, second = (book.enqueue("a", n, **wish).job_id for n in range(2))
    other = book.enqueue("b", 2, resource="printer").job_id
    assert job_of(book, second).waits_for == "ordering_key"
    job = claim(book)
    assert job.job_id == first
    turn = book.turn([Settled(outcome(book, job))], Want("w1", limit=9))
    assert [job.job_id for job in turn.jobs] == [second]
    assert job_of(book, other).waits_for == "resource"
    holder = book.in_the_way(job_of(book, other))
    assert holder is not None and holder.job_id == second


def test_many_locks_held_or_many_jobs_behind_one_make_no_step_dearer(book: Book) -> None:
    for start in range(0, 3000, 1000):
        book.enqueue_many([New("a", n, resource=f"r{start + n}") for n in range(1000)])
    assert len(book.turn((), Want("w", ("a",), 60, 2000)).jobs) == 2000
    for delay_s in (None, 1.0):
        new = [New("b", n, resource="one", delay_s=delay_s) for n in range(1000)]
        book.enqueue_many(new * 2)

    def turns() -> None:
        (job,) = book.turn((), Want("w", ("b",))).jobs
        assert book.turn([Settled(outcome(book, job))], Want("w", ("b",))).jobs

    steps: list[Callable[[], object]] = [
        turns,
        lambda: book.claim("w", topics=("a",)),
        lambda: book.enqueue("b", 1, resource="one"),
    ]
    assert [steps_of(book, step) < 2 * MOST_STEPS for step in steps] == [True] * 3


def test_an_audit_finds_leases_of_one_resource_or_ordering_key_that_overlap(book: Book) -> None:
    wish = {"resource": "printer", "ordering_key": "k"}
    first, second = (book.enqueue("a", n, **wish).job_id for n in range(2))
    claim(book)
    held = {"worker": "w2", "lease_token": 1, "lease_ms": 60_000, "locked_until": ""}
    book.record(Event("job.leased", {"job_id": second, "topic": "a"} | held))
    book.close()
    told = "\n".join(audit(book.layout.root))
    assert f"job {second} is leased while job {first} has its resource printer" in told
    assert f"job {second} is leased while job {first} has its ordering key of a k" in told
