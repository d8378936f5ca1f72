"""Backlog: what stands, how fast it moves, and advice that rests on numbers."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from ops_logs import Log, text

from tallybook import ops
from tallybook.cli.main import _parser
from tallybook.ops import Span


def busy_book(
    book: Path,
    jobs: int = 200,
    every: float = 0.5,
    run: float = 1.0,
    late_run: float | None = None,
    threads: int = 1,
    idle: float = 0.0,
    **ending: object,
) -> Log:
    """One worker that takes one job after the other until the last one has come."""
    log, free, done = Log(book), 1.0, 0
    log.event("worker.started", 0, worker="w1", threads=threads, pid=7)
    for number in range(jobs):
        at = 1 + number * every
        log.enqueued(f"j{number}", at)
        while done <= number and free <= at + every:
            begin = max(free, 1 + done * every)
            took = late_run if late_run and number > jobs / 2 else run
            log.leased(f"j{done}", begin)
            fields = ending if done % 5 == 0 else {}
            log.ended("job.done", f"j{done}", begin, begin + took, **fields)
            free, done = begin + took + idle, done + 1
    return log


def advice(book: Path, span: Span | None = None) -> dict[str, ops.Advice]:
    with ops.open(book) as warehouse:
        return {one.kind: one for one in ops.advice(warehouse, span or Span())}


def test_rates_depth_and_the_workers_needed_are_counted_from_the_events(tmp_path: Path) -> None:
    busy_book(tmp_path)
    with ops.open(tmp_path) as warehouse:
        every, topic = ops.backlog(warehouse, Span(text(1), text(101))).to_dicts()
    assert every["topic"] is None and topic["topic"] == "airports.sync"
    assert (every["arrivals"], every["arrivals_per_s"]) == (200, 2)
    assert every["pending"] + every["leased"] + every["completions"] == 200
    assert every["completions_per_s"] == pytest.approx(1, abs=0.02)
    assert every["utilisation"] == pytest.approx(1, abs=0.02) and every["run_mean_s"] == 1
    assert (every["slots"], every["slots_needed"], every["workers_needed"]) == (1, 3, 3)
    assert every["drain_s"] is None


def test_a_backlog_that_full_workers_cannot_keep_up_with_wants_more_workers(tmp_path: Path) -> None:
    busy_book(tmp_path)
    found = advice(tmp_path, Span(text(1), text(101)))
    assert set(found) == {"more workers"}
    assert found["more workers"].words == (
        "2.0 jobs/s come, 1.0 go; 1 worker with 1 thread in all busy 99% of the time: 3 threads "
        "keep up"
    )
    assert found["more workers"].numbers["slots_needed"] == 3


def test_a_cloud_that_became_slow_wants_a_slower_intake_and_no_more_workers(tmp_path: Path) -> None:
    busy_book(tmp_path, run=0.5, late_run=2.0)
    found = advice(tmp_path)
    assert set(found) == {"slower intake", "cloud slow"}
    assert found["cloud slow"].numbers["late_p50_s"] == 2
    assert "0.500 s in the first" in found["cloud slow"].words


def test_runs_without_an_answer_are_told_as_a_slow_cloud(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for number in range(40):
        log.enqueued(f"j{number}", number)
        log.leased(f"j{number}", number)
        log.ended("job.retry_scheduled", f"j{number}", number, number + 1, http_status=429,
                  error_type="HTTP 429", next_attempt_at=text(number + 9), delay_ms=8)  # fmt: skip
    found = advice(tmp_path)
    assert "40 of 40 runs ended in HTTP 429" in found["cloud slow"].words


def test_jobs_that_are_due_beside_idle_workers_want_larger_batches(tmp_path: Path) -> None:
    busy_book(tmp_path, run=0.01, idle=0.99)
    found = advice(tmp_path)
    assert "more workers" not in found
    words = found["batch too small"].words
    assert "1.0 jobs a claim and runs of 0.0100 s: claim more at once" in words


def test_a_backlog_that_shrinks_says_when_it_is_gone_with_an_interval(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.event("worker.started", 0, worker="w1", threads=1, pid=7)
    for number in range(300):
        log.enqueued(f"j{number}", 1)
    for number in range(200):
        log.leased(f"j{number}", 2 + number)
        log.ended("job.done", f"j{number}", 2 + number, 3 + number)
    with ops.open(tmp_path) as warehouse:
        span = Span(text(2), text(202.5))
        every = ops.backlog(warehouse, span).to_dicts()[0]
        (found,) = ops.advice(warehouse, span)
    assert (every["pending"], every["arrivals"]) == (100, 0)
    assert every["drain_s"] == pytest.approx(100, rel=0.01)
    assert every["drain_low_s"] < every["drain_s"] < every["drain_high_s"] < 120
    assert found.kind == "drains" and "100 jobs pending, gone in 100" in found.words


def test_a_topic_that_no_worker_takes_is_told_beside_a_backlog_that_drains(tmp_path: Path) -> None:
    log = busy_book(tmp_path, every=2)
    log.enqueued("last", 398)
    assert "no worker took" not in advice(tmp_path)["drains"].words
    log.enqueued("left", 390, topic="nobody.sync")
    log.enqueued("after", 399)
    told = advice(tmp_path)["drains"].words
    assert told.endswith("but no worker took a job of nobody.sync in this span")


def test_a_paused_topic_is_told_with_the_command_that_resumes_it(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 1)
    log.event("topic.paused", 2, topic="airports.sync", reason="by hand")
    found = advice(tmp_path)["topic paused"]
    given = shlex.split(found.command)[1:]
    assert given[:3] == ["topic", "resume", "airports.sync"]
    assert _parser(given[0])[0].parse_args(given)


def test_jobs_that_are_due_later_are_pending_and_not_due(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("now", 1)
    log.enqueued("later", 1, next_attempt_at=text(100), delay_ms=99_000)
    with ops.open(tmp_path) as warehouse:
        every = ops.backlog(warehouse, Span(until=text(50))).to_dicts()[0]
    assert (every["pending"], every["due"], every["utilisation"]) == (2, 1, None)


def test_a_job_stands_in_the_topic_that_it_was_enqueued_in_whatever_later_events_say(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path)
    for number in range(20):
        log.enqueued(f"j{number}", 1, "first")
        log.leased(f"j{number}", 2, topic=f"other-{number}")
    log.leased("pruned", 3, topic="left")
    log.expired("pruned", 4, topic="later")
    with ops.open(tmp_path) as warehouse:
        rows = ops.backlog(warehouse).select("topic", "pending", "leased").rows()
    assert rows == [(None, 1, 20), ("first", 0, 20), ("left", 1, 0)]


def test_capacity_says_how_many_times_the_arrivals_could_be_served(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for number in range(40):
        log.enqueued(f"j{number}", number)
        log.leased(f"j{number}", number)
        log.ended("job.done", f"j{number}", number, number + 0.25)
    with ops.open(tmp_path) as warehouse:
        whole = ops.capacity(warehouse).row(0, named=True)
        assert whole["slots_needed"] == 1
        assert whole["headroom"] == pytest.approx(4, rel=0.05)


def test_a_log_without_jobs_has_no_backlog_and_no_advice(tmp_path: Path) -> None:
    Log(tmp_path)
    with ops.open(tmp_path) as warehouse:
        assert ops.backlog(warehouse)["pending"].to_list() == [0]
        assert ops.advice(warehouse) == []
