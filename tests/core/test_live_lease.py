"""A worker that cannot renew a lease knows it before others do, and claims nothing meanwhile."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from core_steps import segments
from live_steps import Place, holding, until

from tallybook import Book
from tallybook.book import Held
from tallybook.worker.running import Running


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path, "[log]\nlock_wait_s = 0.2\n")
    yield made
    made.end()


def told(worker: subprocess.Popen[str], words: str) -> None:
    """Wait until the worker says ``words``."""
    assert worker.stderr is not None
    said = ""
    for line in worker.stderr:
        said += line
        if words in line:
            return
    code = worker.wait(10)
    raise AssertionError(f"the worker ended ({code}) and never said {words!r}, but:\n{said}")


def test_a_lease_is_held_until_its_own_deadline_by_the_boot_clock() -> None:
    running = Running(1_000_000)
    running.start(Held("j", 3), 5_000_000)
    assert running.holds("j", 3, 5_999_999)
    assert not running.holds("j", 3, 6_000_000)
    assert not running.holds("j", 2, 5_500_000)
    running.moved([Held("j", 3)], [], 5_700_000)
    assert running.holds("j", 3, 6_000_000)
    running.moved([], [Held("j", 3)], 5_800_000)
    assert not running.holds("j", 3, 5_800_000)


def test_a_handler_is_told_at_the_deadline_while_nobody_can_reach_the_log(place: Place) -> None:
    place.beating("--lease", "1")
    job_id = place.put("watches")
    until(lambda: (place.root / "watching").exists())
    with holding(place.book) as holder:
        os.kill(holder.pid, signal.SIGSTOP)
        until(lambda: (place.root / "told").exists())
        assert (place.root / "told").read_text() == "True"
    until(lambda: place.named("job.settle_refused"))
    until(lambda: len([e for e in place.named("job.leased") if e["job_id"] == job_id]) == 2)
    assert not place.named("job.done")


def test_a_worker_that_cannot_beat_claims_nothing_and_goes_on_when_it_can(place: Place) -> None:
    worker = place.beating("--lease", "0.6")
    folder, aside = place.book / "heartbeats", place.book / "aside"
    folder.rename(aside)
    folder.write_text("a file in the way")
    told(worker, "heartbeat 5 of 5 failed")
    place.put("ok")
    time.sleep(1.5)
    assert not place.named("job.leased")
    folder.unlink()
    until(lambda: place.named("job.done"))
    assert worker.poll() is None


def test_a_worker_whose_disk_is_full_waits_and_settles_what_it_ran_when_there_is_room(
    place: Place,
) -> None:
    worker = place.beating("--lease", "60")
    job_id = place.put("slow", 1.0)
    until(lambda: (place.root / "running-1").exists())
    size = max(path.stat().st_size for path in segments(place.book))
    soft, hard = resource.prlimit(worker.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (size, hard))
    told(worker, "nothing was changed; trying again")
    assert not place.named("job.done")
    resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (soft, hard))
    until(lambda: [event["job_id"] for event in place.named("job.done")] == [job_id])
    assert len(place.named("job.leased")) == 1


def test_status_names_a_stopped_process_that_holds_the_log_and_needs_no_lock(place: Place) -> None:
    place.put("ok")
    with holding(place.book) as holder:
        os.kill(holder.pid, signal.SIGSTOP)
        command = [
            sys.executable,
            "-m",
            "tallybook",
            "status",
            "--check",
            "--book",
            str(place.book),
        ]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert shown.returncode == 1
        said = f"held by a stopped process {holder.pid}: continue it (kill -CONT {holder.pid})"
        assert said in shown.stdout
    with Book.open(place.book) as book:
        assert book.enqueue("ok", 1).is_new
