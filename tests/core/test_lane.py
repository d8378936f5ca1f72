"""How many jobs a thread claims at once, and when it settles them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from core_steps import claim, names, outcome
from live_steps import until

from tallybook import Book
from tallybook.book import New, Settled, Want
from tallybook.job import Job
from tallybook.log import durable
from tallybook.testing import FakeClock
from tallybook.worker.handlers import registered
from tallybook.worker.lane import LONGEST_BATCH_S, Lane
from tallybook.worker.loop import Worker


def ended(book: Book, job: Job, run_ms: float) -> Settled:
    """A run of ``run_ms`` milliseconds."""
    return Settled(replace(outcome(book, job), duration_ms=run_ms))


def test_short_runs_make_the_next_claim_larger_up_to_128(book: Book) -> None:
    book.enqueue("a", 1)
    job, lane, sizes = claim(book), Lane(), []
    for _ in range(9):
        lane.end(job, ended(book, job, 0.1), 0.0)
        sizes.append(lane.limit)
    assert sizes == [2, 4, 8, 16, 32, 64, 128, 128, 128]


def test_a_worker_that_is_stopped_as_it_claims_hands_back_and_claims_nothing_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def stops_at_the_claim(_: str, name: str) -> None:
        if name == "after_commit" and "job.leased" in names(tmp_path / "b"):
            worker.stop()

    with Book.open(tmp_path / "b") as book, durable.hooked(stops_at_the_claim), heard(caplog):
        book.enqueue_many([New("a", number) for number in range(3)])
        worker = Worker(tmp_path / "b", {"a": registered(lambda _: None)}, threads=1, drain=True)
        thread = threading.Thread(target=worker.run, daemon=True)
        thread.start()
        thread.join(timeout=20)
        assert not thread.is_alive()
        told = names(book)
    assert (told.count("job.leased"), told.count("job.released")) == (1, 1)
    assert "stopped: 0 done, 0 retried, 0 dead, 1 released" in caplog.text


def test_a_draining_worker_names_the_paused_topic_that_it_waits_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Book.open(tmp_path / "b") as book, heard(caplog):
        book.enqueue("a", 1)
        book.pause("a", "by hand")
        worker = Worker(tmp_path / "b", {"a": registered(lambda _: None)}, threads=1, drain=True)
        thread = threading.Thread(target=worker.run, daemon=True)
        thread.start()
        until(
            lambda: "waits for jobs of paused topics: a (tallybook topic resume a)" in caplog.text
        )
        book.resume("a", "by hand")
        thread.join(timeout=20)
        assert not thread.is_alive()
        assert book.counts() == {"a": {"done": 1}}


@contextmanager
def heard(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What workers tell is heard, whatever a command did to the loggers before."""
    logger, level = logging.getLogger("tallybook.worker"), logging.INFO
    with caplog.at_level(level, logger.name):
        logger.addHandler(caplog.handler)
        yield
        logger.removeHandler(caplog.handler)


def test_a_thread_claims_no_more_than_it_expects_to_run_in_50_ms(book: Book) -> None:
    book.enqueue("a", 1)
    job, lane = claim(book), Lane(limit=32)
    lane.end(job, ended(book, job, 10.0), 0.0)
    assert lane.limit == 5
    lane.end(job, ended(book, job, 5000.0), 0.0)
    assert lane.limit == 1


def test_a_run_that_ended_waits_for_the_others_of_its_batch_but_not_long(book: Book) -> None:
    book.enqueue("a", 1)
    job, lane = claim(book), Lane()
    lane.jobs.append(job)
    lane.end(job, ended(book, job, 1.0), 100.0)
    assert lane.must_settle(100.0) is False
    assert lane.must_settle(100.001 + LONGEST_BATCH_S) is True
    lane.jobs.clear()
    assert lane.must_settle(100.0) is True


def test_a_job_that_was_rescued_is_claimed_alone(book: Book, clock: FakeClock) -> None:
    for number in range(4):
        book.enqueue("a", number)
    claim(book, lease_s=1)
    clock.advance(2)
    book.rescue()
    sizes = [[job.payload for job in book.claim_many(Want("w", limit=10))] for _ in range(2)]
    assert sorted(sizes) == [[0], [1, 2, 3]]


def test_a_worker_runs_batches_and_settles_every_one_of_them(tmp_path: Path) -> None:
    seen: list[int] = []

    def take(job: Job) -> None:
        seen.append(job.payload)

    root = tmp_path / "b"
    with Book.open(root) as book:
        for number in range(300):
            book.enqueue("a", number)
    Worker(root, {"a": registered(take)}, threads=2, drain=True).run()
    assert sorted(seen) == list(range(300))
    assert names(root).count("job.done") == 300
