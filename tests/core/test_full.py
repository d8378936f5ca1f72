"""Back-pressure: how much of a topic may be pending, and the reserve of the disk."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from core_steps import claim, events, outcome
from test_live_files import mounted

from tallybook import Book
from tallybook.book import New
from tallybook.book.repairing import Step
from tallybook.book.reserve import Reserve
from tallybook.clock import to_text
from tallybook.errors import NoRoom, QueueFull
from tallybook.testing import FakeClock


def bounded(tmp_path: Path, clock: FakeClock, line: str) -> Book:
    """A book whose topic ``a`` is bounded."""
    root = tmp_path / "bounded"
    root.mkdir()
    (root / "book.toml").write_text(f"[topics.a]\n{line}\n")
    return Book.open(root, clock=clock)


def test_a_topic_with_as_many_pending_as_it_may_takes_no_more(
    tmp_path: Path, clock: FakeClock
) -> None:
    with bounded(tmp_path, clock, "max_pending = 3") as book:
        book.enqueue_many([New("a", n) for n in range(3)])
        with pytest.raises(
            QueueFull, match=r"a is full: 3 jobs .* 1 more .* max_pending is 3"
        ) as told:
            book.enqueue("a", 4)
        assert (told.value.depth, told.value.limit, told.value.backlog_s) == (3, 3, None)
        book.enqueue("b", "another topic")
        claim(book)
        assert book.enqueue("a", 4).is_new


def test_a_batch_is_taken_whole_or_not_at_all(tmp_path: Path, clock: FakeClock) -> None:
    with bounded(tmp_path, clock, "max_pending = 3") as book:
        with pytest.raises(QueueFull) as told:
            book.enqueue_many([New("b", 0), *(New("a", n) for n in range(4))])
        assert told.value.place == 4
        assert book.counts() == {}


@pytest.mark.parametrize(("status", "rule", "is_full"), [("cancelled", "requeue", True),
                                                      ("pending", "cancel", False)])  # fmt: skip
def test_a_plan_counts_what_its_own_steps_bring_back_and_take_away(
    tmp_path: Path, clock: FakeClock, status: str, rule: str, is_full: bool
) -> None:
    with bounded(tmp_path, clock, "max_pending = 1") as book:
        there = book.enqueue("a", 1).job_id
        if status == "cancelled":
            book.steer("cancel", [there], "by hand")
        new = New("a", 2, "plan 1", enqueued_from="plan 1")
        steps = [Step(1, job_id=there, job_status=status, rule=rule), Step(2, new=new)]
        if is_full:
            with pytest.raises(QueueFull):
                book.repair("1", steps, "applied")
            steps.pop()
        book.repair("1", steps, "applied")
        assert book.counts()["a"]["pending"] == 1


def test_bytes_of_payloads_are_bounded_too_and_freed_by_a_claim(
    tmp_path: Path, clock: FakeClock
) -> None:
    with bounded(tmp_path, clock, "max_pending_bytes = 100") as book:
        book.enqueue("a", "é" * 40)
        with pytest.raises(QueueFull, match=r"82 bytes of payloads .* max_pending_bytes is 100"):
            book.enqueue("a", "x" * 20)
        book.enqueue("a", "x" * 10)
        job = claim(book)
        book.enqueue("a", "x" * 70)
        book.settle(outcome(book, job, "retry"))
        with pytest.raises(QueueFull, match="166 bytes"):
            book.enqueue("a", "")


def test_what_is_there_already_or_comes_back_is_never_refused(
    tmp_path: Path, clock: FakeClock
) -> None:
    with bounded(tmp_path, clock, "max_pending = 2") as book:
        first = book.enqueue("a", 1, idempotency_key="k")
        job = claim(book)
        book.enqueue_many([New("a", 2), New("a", 3)])
        assert book.enqueue("a", 1, idempotency_key="k").job_id == first.job_id
        book.settle(outcome(book, job, "dead"))
        book.steer("requeue", [first.job_id], "by hand")
        again = claim(book)
        book.settle(outcome(book, again, "retry"))
        assert book.counts()["a"]["pending"] == 3


def test_a_job_that_supersedes_another_needs_no_more_room(tmp_path: Path, clock: FakeClock) -> None:
    with bounded(tmp_path, clock, "max_pending = 1\nmax_pending_bytes = 10") as book:
        for number in range(3):
            book.enqueue("a", f"12345{number}", ordering_key="k", keep_latest=True)
        latest = [New("a", f"12345{n}", None, ordering_key="k", keep_latest=True) for n in range(3)]
        book.enqueue_many(latest)
        assert book.counts()["a"] == {"cancelled": 5, "pending": 1}


def test_the_refusal_says_how_long_the_backlog_takes_where_workers_told_their_rate(
    tmp_path: Path, clock: FakeClock
) -> None:
    with bounded(tmp_path, clock, "max_pending = 100") as book:
        book.enqueue_many([New("a", n) for n in range(100)])
        now = clock.moment()
        row = {
            "interval_started_at": to_text(now.now), "interval_ended_at": now.wall(10_000),
            "done_count": 15, "dead_count": 5,
        }  # fmt: skip
        book.layout.latest.write_text(json.dumps({"last": {"w": row}}))
        with pytest.raises(QueueFull, match="the backlog takes 50 s") as told:
            book.enqueue("a", 1)
        assert told.value.backlog_s == 50
        clock.advance(600)
        with pytest.raises(QueueFull) as told:
            book.enqueue("a", 1)
        assert told.value.backlog_s is None


def test_below_the_reserve_only_what_runs_is_settled(tmp_path: Path, clock: FakeClock) -> None:
    with mounted(tmp_path / "disk", "size=12m") as disk:
        with Book.open(disk / "book", clock=clock) as book:
            book.enqueue("a", 1)
            job = claim(book)
            taken = os.statvfs(disk)
            (disk / "ballast").write_bytes(bytes(taken.f_bavail * taken.f_frsize - 1_000_000))
            book._reserve = Reserve(disk, 64)
            for change in (lambda: book.enqueue("a", 2), lambda: book.put_entry("k", 1)):
                with pytest.raises(NoRoom, match=re.escape("are kept for settles")):
                    change()
            book.settle(outcome(book, job))
            (disk / "ballast").unlink()
            assert book.enqueue("a", 2).is_new
        assert [e["event"] for e in events(disk / "book")][-2:] == ["job.done", "job.enqueued"]


def test_without_a_reserve_the_disk_is_not_looked_at(tmp_path: Path) -> None:
    Reserve(tmp_path / "nowhere", 0).require()
    with pytest.raises(FileNotFoundError):
        Reserve(tmp_path / "nowhere", 1).require()


def test_the_disk_is_looked_at_once_a_second(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path, 1)
    reserve.require()
    tmp_path.rmdir()
    reserve.require()
