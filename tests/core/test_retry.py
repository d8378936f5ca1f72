"""Retry, snooze and backoff: when a job comes back, and that many do not come back at once."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone

import pytest
from core_steps import claim, job_of, outcome

from tallybook import Book, Retry, Snooze
from tallybook.book import Held, Settled, Want
from tallybook.book.changes import New
from tallybook.errors import BadInput
from tallybook.settings import TopicSettings
from tallybook.testing import FakeClock
from tallybook.worker.handlers import registered
from tallybook.worker.metrics import Counters
from tallybook.worker.run import run


def raised(book: Book, error: Exception) -> None:
    """Run the next job with a handler that raises ``error``."""

    def fail(job: object) -> None:
        raise error

    book.settle(run(registered(fail), claim(book), book, Counters())[0])


@pytest.mark.parametrize("after", [90, 90.0, timedelta(seconds=90)])
def test_a_retry_waits_at_least_as_long_as_was_asked(
    book: Book, clock: FakeClock, after: float | timedelta
) -> None:
    book.enqueue("a", 1)
    raised(book, Retry("busy", after=after))
    clock.advance(89.9)
    assert book.claim("w") is None
    clock.advance(0.2)
    assert claim(book).attempt_count == 1


def test_a_snooze_until_a_time_follows_the_wall_clock_and_counts_nothing(
    book: Book, clock: FakeClock
) -> None:
    until = clock.moment().now.astimezone(timezone(timedelta(hours=5))) + timedelta(hours=1)
    job_id = book.enqueue("a", 1).job_id
    raised(book, Snooze(until=until))
    waits = job_of(book, job_id)
    assert waits.next_attempt_at == until.astimezone(UTC).isoformat()[:19] + ".000000Z"
    clock.advance(3599)
    assert book.claim("w") is None
    clock.jump(2)
    assert claim(book).attempt_count == 0


def test_a_snooze_until_a_past_time_is_due_now(book: Book, clock: FakeClock) -> None:
    book.enqueue("a", 1)
    raised(book, Snooze(until=clock.moment().now - timedelta(days=1)))
    assert claim(book).attempt_count == 0


def test_a_snooze_takes_one_of_its_arguments_and_a_zone() -> None:
    for wrong in ({}, {"for_s": 1.0, "until": datetime.now(UTC)}):
        with pytest.raises(BadInput, match="one of them"):
            Snooze(**wrong)  # type: ignore[arg-type] # a dict of both kinds
    with pytest.raises(BadInput, match="zone"):
        Snooze(until=datetime(2026, 1, 1))


def test_a_thousand_jobs_that_fail_together_come_back_spread_out(
    book: Book, clock: FakeClock
) -> None:
    book._dice = random.Random(1)  # noqa: S311
    rules = TopicSettings()
    book.enqueue_many([New("a", n) for n in range(1000)])
    for attempt in range(1, 10):
        jobs = book.turn((), Want("w", (), 60, 1000)).jobs
        now_us = clock.moment().boot_us
        book.turn([Settled(outcome(book, job, "retry", error_type="Down")) for job in jobs])
        delays = [(job.due_boot_us - now_us) / 1e6 for job in book.jobs(limit=1000)]
        least, most = rules.backoff_s(attempt, 0), rules.backoff_s(attempt, 1)
        assert least <= min(delays) and max(delays) <= most and len(delays) == 1000
        tenths = Counter(int((delay - least) / (most - least) * 9.9999) for delay in delays)
        assert len(tenths) == 10 and max(tenths.values()) < 150
        clock.advance(most)


def test_a_worker_that_dies_between_retries_costs_no_attempt_and_gives_none(
    book: Book, clock: FakeClock
) -> None:
    job_id = book.enqueue("a", 1).job_id
    for attempt in range(1, 11):
        claim(book, "killed")
        book.rescue_of("killed") if attempt % 4 == 0 else book.release(
            [Held(job_id, job_of(book, job_id).lease_token)], "stopping"
        )
        raised(book, Retry("busy"))
        assert job_of(book, job_id).attempt_count == attempt
        clock.advance(400)
    dead = job_of(book, job_id)
    assert (dead.status, dead.rescue_count, dead.error_type) == ("dead", 2, "Retry")


def test_the_tenth_attempt_that_fails_is_the_last(book: Book, clock: FakeClock) -> None:
    job_id = book.enqueue("a", 1).job_id
    for _ in range(10):
        raised(book, Retry("busy"))
        clock.advance(400)
    assert (job_of(book, job_id).status, job_of(book, job_id).attempt_count) == ("dead", 10)
    assert book.claim("w") is None


def rescued_delays(book: Book, clock: FakeClock, jobs: int, died: bool) -> list[float]:
    """Seconds until each of so many jobs is due again, after they were rescued at once."""
    book._dice = random.Random(2)  # noqa: S311
    book.enqueue_many([New("a", n) for n in range(jobs)])
    book.turn((), Want("w", (), 60, jobs))
    if not died:
        clock.advance(61)
    now_us = clock.moment().boot_us
    book.rescue_of("w") if died else book.rescue(jobs)
    assert {job.status for job in book.jobs(limit=jobs)} == {"pending"}
    return [max(job.due_boot_us - now_us, 0) / 1e6 for job in book.jobs(limit=jobs)]


@pytest.mark.parametrize("died", [True, False])
def test_a_batch_that_is_rescued_at_once_comes_back_spread_out(
    book: Book, clock: FakeClock, died: bool
) -> None:
    delays = rescued_delays(book, clock, 1000, died)
    assert delays.count(0) == 32 and max(delays) <= 20
    seconds = Counter(int(delay) for delay in delays if delay)
    assert len(seconds) == 20 and max(seconds.values()) < 100
    clock.advance(20)
    assert len({claim(book).job_id for _ in range(1000)}) == 1000


def test_few_jobs_that_are_rescued_are_due_at_once(book: Book, clock: FakeClock) -> None:
    assert rescued_delays(book, clock, 32, died=True) == [0] * 32


def test_the_spread_of_a_rescue_survives_a_fold_anew(book: Book, clock: FakeClock) -> None:
    delays = rescued_delays(book, clock, 50, died=True)
    before = book.jobs(limit=50)
    for path in book.layout.root.glob("state.db*"):
        path.unlink()
    assert book.jobs(limit=50) == before and max(delays) > 0
