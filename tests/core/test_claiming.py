"""The claim order, and that no number of other jobs makes a claim dearer."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from core_steps import outcome
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tallybook import Book
from tallybook.book import Selection, Settled, Want
from tallybook.book.changes import New
from tallybook.event import Event
from tallybook.job import Job, Status
from tallybook.testing import FakeClock

JOBS = 5_000
MOST_STEPS = 2_000


def steps_of(book: Book, call: Callable[[], Any]) -> int:
    """The steps of SQLite's machine that ``call`` takes, to within ten."""
    taken = 0

    def tick() -> int:
        nonlocal taken
        taken += 10
        return 0

    connection = book._journal._store.connection
    connection.set_progress_handler(tick, 10)
    try:
        call()
    finally:
        connection.set_progress_handler(None, 10)
    return taken


def fill(book: Book, jobs: int = JOBS, **fields: Any) -> None:
    """Enqueue many jobs."""
    topic = fields.pop("topic", "many")
    for _ in range(jobs // 1000):
        book.enqueue_many([New(topic, 1, **fields)] * 1000)


def claimed(book: Book, topics: tuple[str, ...] = (), limit: int = 1) -> list[Job]:
    """What a worker gets."""
    return book.turn((), Want("w", topics, 60, limit)).jobs


def expected(jobs: list[Job], book: Book, topics: tuple[str, ...], paused: set[str]) -> list[str]:
    """The claim order as the docs give it, by plain sorting."""
    moment = book.moment()
    due = [
        job
        for job in jobs
        if job.status == Status.PENDING
        and job.due_boot_us <= moment.boot_us
        and job.due_at <= moment.wall()
        and (not topics or job.topic in topics)
        and job.topic not in paused
    ]
    due.sort(key=lambda j: (-j.priority, j.next_attempt_at or j.created_at, j.ordinal))
    return [job.job_id for job in due]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**9))
def test_claims_come_by_priority_then_due_time_then_age(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    dice, clock = random.Random(seed), FakeClock()  # noqa: S311
    with Book.open(tmp_path_factory.mktemp("claims") / "book", clock=clock) as book:
        for _ in range(dice.randrange(1, 40)):
            wait: dict[str, Any] = dice.choice(
                [{}, {}, {"delay_s": dice.choice([1, 5, 50])},
                 {"next_attempt_at": clock.moment().now + timedelta(seconds=dice.choice([1, 30]))}]
            )  # fmt: skip
            book.enqueue(dice.choice("abc"), 1, priority=dice.choice([0, 0, 5, -3]), **wait)
            clock.advance(dice.choice([0.001, 1]))
        paused = set(dice.sample("abc", dice.choice([0, 0, 1, 2])))
        for topic in paused:
            book.record(Event("topic.paused", {"topic": topic}))
        topics = tuple(dice.sample("abc", dice.choice([0, 1, 2, 3])))
        clock.advance(dice.choice([0, 3, 100]))
        due = expected(book.jobs(limit=1000), book, topics, paused)
        limit = dice.choice([1, 3, 100])
        while due:
            got = [job.job_id for job in claimed(book, topics, limit)]
            assert got == due[:limit]
            due = due[limit:]
        assert claimed(book, topics, limit) == []


@pytest.fixture
def crowded(book: Book) -> Iterator[Book]:
    """A book in which many jobs stand before the one that is asked for."""
    fill(book, priority=9, delay_s=3600)
    fill(book, priority=9, next_attempt_at=book.moment().now + timedelta(days=1))
    fill(book, topic="unwanted", priority=9)
    for n in range(200):
        book.enqueue(f"t{n}", n)
    return book


@pytest.mark.parametrize("topics", [("t7",), ("t7", "t8"), tuple(f"t{n}" for n in range(7, 19))])
def test_a_claim_of_topics_passes_over_any_number_of_other_jobs(
    crowded: Book, topics: tuple[str, ...]
) -> None:
    found: list[Job] = []
    steps = steps_of(crowded, lambda: found.extend(claimed(crowded, topics)))
    assert [job.topic for job in found] == ["t7"]
    assert steps < MOST_STEPS + 1000 * len(topics)


def test_jobs_that_wait_do_not_slow_the_claim_of_those_that_do_not(book: Book) -> None:
    fill(book, priority=9, delay_s=3600)
    fill(book, priority=9, next_attempt_at=book.moment().now + timedelta(days=1))
    wanted = book.enqueue("many", "now")
    found: list[Job] = []
    steps = steps_of(book, lambda: found.extend(claimed(book)))
    assert [job.job_id for job in found] == [wanted.job_id]
    assert steps < MOST_STEPS


def test_a_paused_topic_does_not_slow_the_claim_of_another(crowded: Book) -> None:
    crowded.record(Event("topic.paused", {"topic": "unwanted"}))
    found: list[Job] = []
    steps = steps_of(crowded, lambda: found.extend(claimed(crowded)))
    assert [job.topic for job in found] == ["t0"]
    assert steps < 12 * MOST_STEPS


def test_jobs_that_became_due_are_claimed_without_a_scan(book: Book, clock: FakeClock) -> None:
    fill(book, delay_s=1, priority=2)
    fill(book, delay_s=3600, priority=3)
    book.enqueue("many", "late", delay_s=2, priority=4)
    clock.advance(10)
    found: list[Job] = []
    steps = steps_of(book, lambda: found.extend(claimed(book, (), 2)))
    assert [job.priority for job in found] == [4, 2]
    assert steps < MOST_STEPS


def test_done_jobs_make_neither_claims_nor_counts_dearer(book: Book) -> None:
    fill(book, 1000)
    while jobs := claimed(book, limit=500):
        book.turn([Settled(outcome(book, job, "done")) for job in jobs])
        if book.counts()["many"]["done"] < JOBS:
            fill(book, 1000)
    fill(book, 1000)
    for ask in (lambda: turn_once(book), book.counts, book.oldest_pending_at):
        assert steps_of(book, ask) < MOST_STEPS


def turn_once(book: Book) -> None:
    """Claim a job, then settle it and claim the next."""
    (job,) = claimed(book)
    turn = book.turn([Settled(outcome(book, job, "done"))], Want("w", (), 60))
    assert not turn.refused and len(turn.jobs) == 1


def test_the_numbers_of_jobs_are_those_of_the_rows(book: Book, clock: FakeClock) -> None:
    dice = random.Random(11)  # noqa: S311
    for n in range(300):
        book.enqueue(dice.choice("ab"), n, delay_s=dice.choice([None, 5]))
        for job in claimed(book, (), dice.choice([0, 1, 2])):
            ended = dice.choice(["done", "dead", "retry", "snooze", None])
            if ended:
                book.settle(outcome(book, job, ended, after_s=1.0))
        clock.advance(dice.choice([0, 70]))
        book.rescue()
    rows: dict[str, dict[str, int]] = {}
    for job in book.jobs(limit=1000):
        of_topic = rows.setdefault(job.topic, {})
        of_topic[job.status] = of_topic.get(job.status, 0) + 1
    assert book.counts() == {topic: dict(sorted(rows[topic].items())) for topic in sorted(rows)}


def test_jobs_of_a_status_are_listed_by_its_index(book: Book) -> None:
    fill(book, 5000)
    fill(book, 1000, priority=4)
    fill(book, 1000, delay_s=60)
    (job,) = claimed(book)
    book.settle(outcome(book, job, "dead"))
    for status in ("dead", "cancelled", "leased", "pending"):
        steps = steps_of(book, lambda status=status: book.jobs(status=status, limit=5))
        assert steps < MOST_STEPS
    assert steps_of(book, book.oldest_pending_at) < MOST_STEPS
    assert [job.job_id for job in book.jobs(status="dead")] == [job.job_id]


def test_pending_jobs_are_listed_by_age_however_they_wait(book: Book) -> None:
    dice = random.Random(5)  # noqa: S311
    soon = book.moment().now + timedelta(hours=1)
    made = [
        book.enqueue(
            dice.choice("ab"), n, priority=dice.choice([0, 3]),
            **dice.choice([{}, {}, {"delay_s": 60}, {"next_attempt_at": soon}]),
        ).job_id
        for n in range(60)
    ]  # fmt: skip
    pending = Selection("pending")
    assert [job.job_id for job in book.selected(pending, -1)] == made
    first = book.selected(pending, 25)
    rest = book.selected(pending, 100, after=first[-1].ordinal)
    assert [job.job_id for job in first + rest] == made
    of_b = book.selected(Selection("pending", "b"), 7)
    assert [job.topic for job in of_b] == ["b"] * 7
    assert book.oldest_pending_at() == first[0].created_at


def test_a_key_that_is_the_id_of_another_job_is_that_jobs_key(book: Book) -> None:
    first = book.enqueue("a", 1)
    again = book.enqueue("a", 1, idempotency_key=first.job_id)
    assert (again.job_id, again.is_new) == (first.job_id, False)
    assert book.enqueue("b", 1, idempotency_key=first.job_id).is_new
