"""Limits of a topic: leases at once, claims a second; and that none is in another's way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from core_steps import outcome
from test_claiming import MOST_STEPS, fill, steps_of
from test_order import due

from tallybook import Book
from tallybook.book import Settled, Want
from tallybook.errors import BadInput
from tallybook.job import Job
from tallybook.testing import FakeClock

TOML = """
[topics.few]
max_running = 2
[topics.slow]
rate_per_s = 10
rate_burst = 3
[topics.second]
rate_per_s = 4
"""


@pytest.fixture
def limited(tmp_path: Path, clock: FakeClock) -> Iterator[Book]:
    root = tmp_path / "limited"
    root.mkdir()
    (root / "book.toml").write_text(TOML)
    with Book.open(root, clock=clock) as book:
        for topic in ("few", "slow", "second", "free"):
            fill(book, 1000, topic=topic)
        yield book


def topics(jobs: list[Job]) -> dict[str, int]:
    """How many jobs of each topic."""
    names = [job.topic for job in jobs]
    return {name: names.count(name) for name in names}


def test_no_more_are_leased_of_a_topic_than_may_run_at_once(
    limited: Book, clock: FakeClock
) -> None:
    first = limited.turn((), Want("w1", ("few",), 60, 10)).jobs
    assert len(first) == 2
    assert limited.turn((), Want("w2", ("few",), 60, 10)).jobs == []
    turn = limited.turn([Settled(outcome(limited, first[0]))], Want("w1", ("few",), 60, 10))
    assert len(turn.jobs) == 1


def test_the_leases_of_a_dead_worker_do_not_count_once_they_are_rescued(
    limited: Book, clock: FakeClock
) -> None:
    limited.turn((), Want("dies", ("few",), 60, 10))
    limited.rescue_of("dies")
    assert topics(limited.turn((), Want("w2", ("few",), 60, 10)).jobs) == {"few": 1}
    limited.turn((), Want("hangs", ("few",), 60, 1))
    clock.advance(61)
    limited.rescue()
    assert limited.claim("w2", topics=("few",))


def test_a_rate_lets_a_burst_through_and_then_so_many_a_second(
    limited: Book, clock: FakeClock
) -> None:
    want = Want("w", ("slow",), 60, 10)
    assert len(limited.turn((), want).jobs) == 3
    assert limited.turn((), want).jobs == []
    clock.advance(0.25)
    assert len(limited.turn((), want).jobs) == 2
    assert limited.next_due_s(("slow",)) == pytest.approx(0.05, abs=0.001)
    assert limited.next_due_s(("free",)) is None
    clock.advance(0.05)
    assert len(limited.turn((), want).jobs) == 1
    clock.advance(3600)
    assert len(limited.turn((), want).jobs) == 3


def test_without_a_burst_the_claims_of_one_second_may_come_at_once(limited: Book) -> None:
    assert len(limited.turn((), Want("w", ("second",), 60, 10)).jobs) == 4


def test_a_restart_does_not_fill_the_bucket_and_a_reboot_does(
    limited: Book, clock: FakeClock
) -> None:
    want = Want("w", ("slow",), 60, 10)
    assert len(limited.turn((), want).jobs) == 3
    limited.close()
    for path in limited.layout.root.glob("state.db*"):
        path.unlink()
    with Book.open(limited.layout.root, clock=clock) as again:
        assert again.turn((), want).jobs == []
        clock.reboot()
        again.enqueue("free", "the first change of a boot")
        assert len(again.turn((), want).jobs) == 3


def test_topics_at_their_limits_are_in_no_others_way(limited: Book) -> None:
    want = Want("w", ("few", "slow", "free"), 60, 9)
    assert topics(limited.turn((), want).jobs) == {"few": 2, "slow": 3, "free": 4}
    assert topics(limited.turn((), want).jobs) == {"free": 9}
    assert steps_of(limited, lambda: limited.turn((), want)) < 8 * MOST_STEPS
    assert len(due(limited, 5)) == 5


def test_a_topic_whose_limit_is_reached_makes_no_worker_write(limited: Book) -> None:
    limited.turn((), Want("w1", ("few",), 60, 10))
    before = limited.position()
    assert limited.claim("w2", topics=("few",)) is None
    assert limited.position() == before


def test_jobs_that_expired_take_no_token_and_hide_nobody(limited: Book, clock: FakeClock) -> None:
    job_ids = [
        limited.enqueue("few", n, priority=9, expires_after_s=1 if n < 5 else None).job_id
        for n in range(7)
    ]
    clock.advance(2)
    jobs = limited.turn((), Want("w", ("few",), 60, 5)).jobs
    assert [job.job_id for job in jobs] == job_ids[5:]


def test_a_settle_that_lets_a_job_through_is_news(limited: Book) -> None:
    wake = limited.layout.wake
    jobs = limited.turn((), Want("w", ("few",), 60, 2)).jobs
    wake.unlink(missing_ok=True)
    limited.settle(outcome(limited, jobs[0]))
    assert wake.exists()
    free = limited.turn((), Want("w", ("free",), 60, 1)).jobs
    wake.unlink()
    limited.settle(outcome(limited, free[0]))
    assert not wake.exists()


@pytest.mark.parametrize("shared", [{"ordering_key": "k"}, {"resource": "r"}])
def test_the_next_in_line_or_of_a_resource_is_news(limited: Book, shared: dict[str, Any]) -> None:
    for _ in range(2):
        limited.enqueue("line", 1, **shared)
    (job,) = limited.turn((), Want("w", ("line",), 60, 2)).jobs
    limited.layout.wake.unlink(missing_ok=True)
    limited.settle(outcome(limited, job))
    assert limited.layout.wake.exists()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("max_running = -1", "-1 is not in 0 to"),
        ("rate_per_s = -0.5", "is not in 0 to 1e"),
        ("rate_burst = 1.5", "whole number"),
        ("max_pending = -3", "-3 is not in 0 to"),
        ('ordering = "fifo"', "is none of hold, skip"),
        ("max_runing = 1", "did you mean max_running?"),
    ],
)
def test_a_wrong_limit_is_refused_with_its_place(tmp_path: Path, line: str, words: str) -> None:
    (tmp_path / "book.toml").write_text(f"[topics.a]\n{line}\n")
    with pytest.raises(BadInput, match=words) as told:
        Book.open(tmp_path)
    assert 'topics."a"' in str(told.value)


def test_a_limit_of_zero_is_none(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "book.toml").write_text(
        "[topics.a]\nmax_running = 0\nrate_per_s = 0\nmax_pending = 0\nmax_pending_bytes = 0\n"
    )
    with Book.open(tmp_path, clock=clock) as book:
        fill(book, 1000, topic="a")
        assert len(book.turn((), Want("w", ("a",), 60, 500)).jobs) == 500
