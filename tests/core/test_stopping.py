"""Runs that are to stop: told first; where one does not listen, its process ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from core_steps import events
from live_steps import Place, until

from tallybook import Book
from tallybook.cli.main import main
from tallybook.errors import BadInput
from tallybook.job import Job
from tallybook.worker.handlers import registered
from tallybook.worker.loop import Worker

RULES = '[topics."slow"]\nbackoff_first_s = 0.001\njitter = 0\n'


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path, RULES)
    yield made
    made.end()


def job_of(place: Place, job_id: str) -> Job:
    with Book.read(place.book) as book:
        job = book.job(job_id)
    assert job is not None
    return job


def test_a_run_that_ignores_its_timeout_ends_its_process_and_is_a_failed_attempt(
    place: Place,
) -> None:
    late = place.put("slow", 60, timeout_s=0.4)
    other = place.put("slow", 60)
    worker = place.worker("--threads", "2", "--grace", "0.2", "--lease", "2")
    assert worker.wait(30) == 3
    assert worker.stderr and "start it again" in worker.stderr.read()
    assert {job_of(place, job_id).status for job_id in (late, other)} == {"leased"}
    assert place.worker("--drain").wait(30) == 0
    (failed,) = place.named("job.retry_scheduled")
    assert (failed["job_id"], failed["error_type"]) == (late, "TimedOut")
    assert failed["duration_ms"] >= 400
    (released,) = place.named("job.released")
    assert released["job_id"] == other
    assert [job_of(place, job_id).rescue_count for job_id in (late, other)] == [0, 0]
    assert [job_of(place, job_id).status for job_id in (late, other)] == ["done", "done"]
    assert [job_of(place, job_id).attempt_count for job_id in (late, other)] == [2, 1]
    assert [e["reason"] for e in place.named("worker.stopped")] == ["timed_out", "drained"]


def test_no_lease_begins_before_the_process_that_had_the_last_one_is_dead(place: Place) -> None:
    job_id = place.put("slow", 60, timeout_s=0.3)
    ended = place.worker("--grace", "0.2", "--lease", "2")
    until(lambda: place.named("job.leased"))
    other = place.beating("--name", "other")
    assert ended.wait(30) == 3
    until(lambda: job_of(place, job_id).status == "done")
    order = [
        (e["event"], e["lease_token"])
        for e in events(place.book)
        if e.get("job_id") == job_id
        and e["event"] in ("job.leased", "job.retry_scheduled", "job.done")
    ]
    names = ["job.leased", "job.retry_scheduled", "job.leased", "job.done"]
    assert order == list(zip(names, [1, 1, 2, 2], strict=True))
    other.terminate()


def test_a_cancelled_job_is_told_and_its_run_may_end_by_itself(place: Place) -> None:
    job_id = place.put("watches")
    place.worker("--lease", "2")
    until((place.root / "watching").exists)
    assert main(["jobs", "cancel", job_id, "--book", str(place.book)]) == 0
    until((place.root / "told").exists)
    assert (place.root / "told").read_text() == "True"
    until(lambda: job_of(place, job_id).status == "done")


def test_a_cancelled_job_that_does_not_listen_is_cancelled_once_its_process_is_dead(
    place: Place,
) -> None:
    job_id = place.put("slow", 60)
    parent = place.worker("--processes", "1", "--grace", "0.2", "--lease", "2")
    until((place.root / "running-1").exists)
    assert main(["jobs", "cancel", job_id, "--book", str(place.book)]) == 0
    until(lambda: job_of(place, job_id).status == "cancelled")
    assert [e["reason"] for e in place.named("worker.stopped")] == ["cancelled"]
    until(lambda: len(place.named("worker.started")) == 2)
    parent.terminate()
    assert parent.wait(30) == 0


def test_a_coroutine_is_cancelled_at_its_timeout_and_its_process_lives(tmp_path: Path) -> None:
    async def sleeps(job: Job) -> int:
        await asyncio.sleep(60 if job.attempt_count == 0 else 0)
        return 1

    toml = '[topics."a"]\ntimeout_s = 0.2\nbackoff_first_s = 0.001\njitter = 0\n'
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "book.toml").write_text(toml)
    with Book.open(tmp_path / "book") as book:
        job_id = book.enqueue("a", 1).job_id
        Worker(book.layout.root, {"a": registered(sleeps)}, drain=True, lease_s=1).run()
        job = book.job(job_id)
    assert job is not None
    assert (job.status, job.attempt_count, job.error_type) == ("done", 2, "TimedOut")
    assert job.last_error == "it ran longer than its timeout of 0.2 s"


@pytest.mark.parametrize("timeout_s", [0, -1, 1e12])
def test_a_timeout_that_is_none_is_bad_input(tmp_path: Path, timeout_s: float) -> None:
    with Book.open(tmp_path / "book") as book, pytest.raises(BadInput, match="timeout"):
        book.enqueue("a", 1, timeout_s=timeout_s)
    with pytest.raises(BadInput, match="--grace"):
        Worker(tmp_path / "book", {}, grace_s=-1)
