"""expires_after: what bounds a job that no attempt could bring to an end."""

from __future__ import annotations

import pytest
from core_steps import claim, events, job_of, outcome

from tallybook import Book
from tallybook.book import New, Want
from tallybook.errors import BadInput
from tallybook.testing import FakeClock, audit


def last(book: Book) -> tuple[str, str | None]:
    """Name and reason of the last event."""
    event = events(book)[-1]
    return event["event"], event.get("reason")


def test_an_expired_job_is_dead_at_its_next_claim_and_the_next_one_is_claimed(
    book: Book, clock: FakeClock
) -> None:
    over = [book.enqueue("a", n, expires_after_s=60).job_id for n in range(30)]
    alive = book.enqueue("a", "alive").job_id
    clock.advance(60)
    assert claim(book).job_id == alive
    assert {job_of(book, job_id).status for job_id in over} == {"dead"}
    dead = job_of(book, over[0])
    assert (dead.error_type, dead.last_error) == ("Expired", f"not done by {dead.expires_at}")


def test_a_job_is_claimed_up_to_the_end_of_its_time(book: Book, clock: FakeClock) -> None:
    book.enqueue("a", 1, expires_after_s=60)
    clock.advance(59.999)
    assert claim(book).attempt_count == 0


@pytest.mark.parametrize("counted", [True, False])
def test_an_expired_job_is_not_tried_again(book: Book, clock: FakeClock, counted: bool) -> None:
    book.enqueue("a", 1, expires_after_s=30)
    job = claim(book)
    clock.advance(31)
    book.settle(outcome(book, job, "retry", error_type="Down", counted=counted))
    assert last(book) == ("job.dead", "expired")
    assert job_of(book, job.job_id).attempt_count == int(counted)
    assert audit(book.layout.root) == []


def test_an_expired_job_that_is_done_in_its_lease_is_done(book: Book, clock: FakeClock) -> None:
    book.enqueue("a", 1, expires_after_s=30)
    job = claim(book)
    clock.advance(31)
    book.settle(outcome(book, job, "done"))
    assert job_of(book, job.job_id).status == "done"


def test_days_offline_kill_no_job_without_an_end_and_one_with_it(
    book: Book, clock: FakeClock
) -> None:
    for_ever = book.enqueue("a", 1).job_id
    bounded = book.enqueue("b", 1, expires_after_s=86400).job_id
    for _ in range(72):
        clock.advance(3600)
        for job in book.turn((), Want("w", (), 60, 2)).jobs:
            book.settle(outcome(book, job, "retry", error_type="Offline", counted=False))
    assert (job_of(book, for_ever).status, job_of(book, for_ever).attempt_count) == ("pending", 0)
    assert job_of(book, bounded).status == "dead"


def test_pending_jobs_that_nobody_claims_are_swept_in_small_batches(
    book: Book, clock: FakeClock
) -> None:
    book.enqueue_many([New("a", n, delay_s=3600, expires_after_s=60) for n in range(250)])
    assert book.expire() == []
    clock.advance(61)
    assert [len(book.expire()) for _ in range(3)] == [200, 50, 0]
    assert {job.status for job in book.jobs(limit=1000)} == {"dead"}


def test_no_jump_of_the_wall_clock_expires_a_job(book: Book, clock: FakeClock) -> None:
    book.enqueue("a", 1, expires_after_s=60)
    clock.jump(86400)
    assert book.expire() == []
    clock.jump(-2 * 86400)
    clock.advance(61)
    assert len(book.expire()) == 1


def test_after_a_reboot_the_time_to_expire_is_counted_on(book: Book, clock: FakeClock) -> None:
    book.enqueue("a", 1, expires_after_s=100)
    clock.advance(40)
    clock.reboot(30)
    book.enqueue("a", 2, delay_s=3600)  # the first change of a boot counts all waits anew
    clock.advance(29)
    assert book.expire() == []
    clock.advance(2)
    assert len(book.expire()) == 1


@pytest.mark.parametrize("seconds", [0, -1, 367 * 86400])
def test_a_time_to_expire_has_bounds(book: Book, seconds: float) -> None:
    with pytest.raises(BadInput, match="expires after"):
        book.enqueue("a", 1, expires_after_s=seconds)


def test_a_delayed_job_is_not_claimed_early_and_its_lease_starts_at_the_claim(
    book: Book, clock: FakeClock
) -> None:
    book.enqueue("a", 1, delay_s=6 * 3600)
    for _ in range(11):
        clock.advance(1800)
        assert book.claim("w", lease_s=60) is None
    clock.advance(1801)
    job = claim(book, lease_s=60)
    assert job.lease_boot_us == clock.moment().boot_us + 60_000_000
    assert book.claim("other") is None


def test_a_requeued_job_has_all_its_time_again(book: Book, clock: FakeClock) -> None:
    job_id = book.enqueue("a", 1, expires_after_s=60).job_id
    clock.advance(61)
    book.expire()
    book.steer("requeue", [job_id], "once more")
    clock.advance(59)
    assert book.expire() == []
    clock.advance(1)
    assert [event["job_id"] for event in book.expire()] == [job_id]
