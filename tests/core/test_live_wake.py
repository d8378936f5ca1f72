"""Waiting costs nothing and ends at once: inotify, a poll where there is none, and due times."""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from live_steps import Place, until

from tallybook import Book
from tallybook.book import New, news
from tallybook.event import Event
from tallybook.testing import FakeClock
from tallybook.worker.wake import POLL_S, Wake


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.end()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "wake"
    path.touch()
    return path


def waiting(wake: Wake, timeout_s: float = 20) -> tuple[threading.Thread, list[bool]]:
    """A thread that waits, and what it will have been told."""
    told: list[bool] = []
    thread = threading.Thread(target=lambda: told.append(wake.wait(timeout_s)), daemon=True)
    thread.start()
    return thread, told


def test_who_waits_is_woken_by_a_write_that_ends(file: Path) -> None:
    wake = Wake(file)
    assert not wake.polls
    thread, told = waiting(wake)
    news.tell(str(file), [Event("job.enqueued", {})])
    thread.join(timeout=10)
    assert told == [True]
    wake.close()


def test_news_that_came_before_the_wait_are_not_lost(file: Path) -> None:
    wake = Wake(file)
    news.tell(str(file), [Event("job.enqueued", {})])
    assert wake.wait(20)
    assert not wake.wait(0.01)
    wake.close()


def test_an_end_of_a_job_wakes_nobody(file: Path) -> None:
    wake = Wake(file)
    news.tell(str(file), [Event("job.done", {}), Event("job.leased", {})])
    assert not wake.wait(0.05)
    wake.close()


def test_one_piece_of_news_wakes_one_thread_and_a_call_wakes_one_more(file: Path) -> None:
    wake = Wake(file)
    both = [waiting(wake), waiting(wake)]
    news.tell(str(file), [Event("job.enqueued", {})])
    until(lambda: sum(map(len, (told for _, told in both))) == 1)
    wake.rouse()
    for thread, told in both:
        thread.join(timeout=10)
        assert told == [True]
    wake.close()


def test_closing_wakes_all_who_wait(file: Path) -> None:
    wake = Wake(file)
    all_of_them = [waiting(wake) for _ in range(4)]
    wake.close()
    for thread, _ in all_of_them:
        thread.join(timeout=10)
        assert not thread.is_alive()


def test_a_file_that_was_deleted_and_made_anew_is_watched_again(file: Path) -> None:
    wake = Wake(file)
    file.unlink()
    file.touch()
    assert not wake.wait(0.01) or not wake.wait(0.01)
    thread, told = waiting(wake)
    until(lambda: news.tell(str(file), [Event("job.enqueued", {})]) or told)
    thread.join(timeout=10)
    assert not wake.polls
    wake.close()


@pytest.mark.parametrize("why", ["asked", "gone"])
def test_where_nothing_can_be_watched_it_says_every_50_ms_that_there_may_be_news(
    file: Path, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why == "asked":
        monkeypatch.setenv("TALLYBOOK_POLL", "1")
    else:
        file.unlink()
    wake = Wake(file)
    began = time.monotonic()
    assert wake.polls and wake.wait(20)
    assert POLL_S * 0.9 <= time.monotonic() - began < 10
    wake.close()


def test_an_enqueue_wakes_an_idle_worker_long_before_it_would_look_by_itself(place: Place) -> None:
    place.beating("--threads", "4")
    waited_ms: list[float] = []
    with Book.open(place.book) as book:
        for _ in range(9):
            time.sleep(0.05)
            job_id = book.enqueue("ok", None).job_id
            enqueued_us = book.moment().boot_us
            until(lambda: book.counts()["ok"] == {"done": len(waited_ms) + 1})
            job = book.job(job_id)
            assert job and job.result_json
            waited_ms.append((int(job.result_json) - enqueued_us) / 1000)
    assert statistics.median(waited_ms) < 100, waited_ms


def test_a_batch_wakes_as_many_threads_as_it_has_jobs(place: Place) -> None:
    place.beating("--threads", "3")
    time.sleep(0.2)
    with Book.open(place.book) as book:
        book.enqueue_many([New("slow", 20) for _ in range(3)])
    until(lambda: len(place.named("job.leased")) == 3)
    leased_us = [event["boot_us"] for event in place.named("job.leased")]
    assert max(leased_us) - min(leased_us) < 400_000


def test_a_job_that_waits_starts_when_it_is_due(place: Place) -> None:
    place.beating()
    place.put("ok", delay_s=0.35)
    until(lambda: place.named("job.done"))
    (enqueued,), (leased,) = place.named("job.enqueued"), place.named("job.leased")
    assert 350 <= (leased["boot_us"] - enqueued["boot_us"]) / 1000 < 800


def test_an_idle_worker_costs_next_to_nothing(place: Place) -> None:
    process = place.beating("--threads", "4")
    time.sleep(0.5)
    before = cpu_s(process.pid)
    time.sleep(3)
    assert (cpu_s(process.pid) - before) / 3 < 0.03


def cpu_s(pid: int) -> float:
    """Processor seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_the_next_due_time_is_the_soonest_by_either_clock_and_none_where_nothing_waits(
    book: Book, clock: FakeClock
) -> None:
    book.enqueue("a", 1)
    assert book.next_due_s() is None
    book.enqueue("a", 2, delay_s=30)
    assert book.next_due_s() == 30
    book.enqueue("a", 3, next_attempt_at=clock.moment().now + timedelta(seconds=10))
    assert book.next_due_s() == 10
    clock.advance(11)
    assert book.next_due_s() == 19
    clock.advance(20)
    assert book.next_due_s() is None
