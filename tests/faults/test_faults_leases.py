"""Named faults of leases and rescues; the others are listed in README.md."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path

import pytest
import storms
from core_steps import outcome
from fault_steps import until

from tallybook import Book
from tallybook.cli.main import main
from tallybook.errors import TallybookError
from tallybook.event import Event
from tallybook.layout import Layout
from tallybook.log.reader import history
from tallybook.testing import FakeClock, Fault, audit, faults
from tallybook.worker.sign import Sign, bury_the_dead, path_of

SLEEPER = """
import time
from tallybook import handler

@handler("a")
def a(job):
    open(f"running-{job.payload}", "w").close()
    time.sleep(job.payload)
"""


def said(book: Path) -> list[Event]:
    return [event for event, _ in history(Layout(book))]


def test_a_job_of_any_length_against_its_lease_runs_exactly_once(tmp_path: Path) -> None:
    """F1: 0.5, 1, 1.01, 3 and 10 times the lease."""
    book = storms.made(tmp_path)
    (tmp_path / "storm_handlers.py").write_text(SLEEPER)
    lease_s = 0.8
    with Book.open(book) as opened:
        for factor in (0.5, 1, 1.01, 3, 10):
            opened.enqueue("a", factor * lease_s)
    both = [storms.worker(tmp_path, "--lease", str(lease_s), "--drain", "--threads", "3")] * 1
    both.append(storms.worker(tmp_path, "--lease", str(lease_s), "--drain", "--threads", "3"))
    assert [one.wait(timeout=120) for one in both] == [0, 0]
    seen = Counter(event.name for event in said(book))
    assert (seen["job.leased"], seen["job.done"], seen["job.lease_expired"]) == (5, 5, 0)
    assert audit(book) == []


def test_a_worker_that_drains_longer_than_its_lease_keeps_its_job(tmp_path: Path) -> None:
    """F3: the heartbeat goes on after SIGTERM until the last job is settled."""
    book = storms.made(tmp_path)
    (tmp_path / "storm_handlers.py").write_text(SLEEPER)
    with Book.open(book) as opened:
        opened.enqueue("a", 2.5)
    draining = storms.worker(tmp_path, "--lease", "0.8")
    until(lambda: (tmp_path / "running-2.5").exists())
    other = storms.worker(tmp_path, "--lease", "0.8")
    draining.send_signal(signal.SIGTERM)
    assert draining.wait(timeout=60) == 0
    other.terminate()
    other.wait(timeout=60)
    seen = Counter(event.name for event in said(book))
    assert (seen["job.leased"], seen["job.done"], seen["job.lease_expired"]) == (1, 1, 0)


def test_workers_that_were_replaced_are_not_online_and_leave_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """F69: twenty died one after the other, each under a name of its own; one lives."""

    def states() -> dict[str, str]:
        assert main(["status", "--json", "--book", str(tmp_path)]) == 0
        told = json.loads(capsys.readouterr().out)["workers"]
        return {worker["worker"]: worker["state"] for worker in told}

    with Book.open(tmp_path) as book:
        moment = book.moment()
        mine = {"host": book.node.host, "boot_id": moment.boot_id, "boot_us": moment.boot_us}
        signs = {f"w{number}": {"worker": f"w{number}", "pid": 1} | mine for number in range(20)}
        for name, sign in signs.items():
            path_of(book, name).write_text(json.dumps(sign))
        living = Sign(book, "lives", {"worker": "lives", "pid": 1} | mine)
        assert states() == dict.fromkeys(signs, "dead") | {"lives": "alive"}
        bury_the_dead(book)
        assert states() == {"lives": "alive"}
        assert [path.name for path in book.layout.heartbeats.iterdir()] == ["lives.json"]
        living.remove()
        assert states() == {}


def test_no_rescue_ever_lowers_a_counter(tmp_path: Path) -> None:
    """F4: a slow job reaches its limits; it does not circle for ever."""
    clock = FakeClock()
    seen = []
    with Book.open(tmp_path / "b", clock=clock) as book:
        book.enqueue("a", 1)
        job = book.claim("w", lease_s=1)
        while job:
            seen.append((job.attempt_count, job.rescue_count, job.lease_token))
            if len(seen) == 2:
                book.settle(outcome(book, job, "retry", error="busy"))
            clock.advance(400)
            book.rescue()
            job = book.claim("w", lease_s=1)
            assert len(seen) < 20
        assert book.counts() == {"a": {"dead": 1}}
    assert seen == sorted(seen)
    assert [token for _, _, token in seen] == list(range(1, len(seen) + 1))


def test_a_rescue_that_fails_is_tried_again_until_all_250_jobs_are_free(tmp_path: Path) -> None:
    """F11: recovery is a loop and no error is swallowed."""
    clock = FakeClock()
    with Book.open(tmp_path / "b", clock=clock) as book:
        for number in range(250):
            book.enqueue("a", number)
            book.claim("gone", lease_s=1)
        clock.advance(2)
        with faults(Fault("write", "segment", 2, "EIO")):
            freed = len(book.rescue())
            with pytest.raises(TallybookError, match="nothing was changed"):
                book.rescue()
            while found := book.rescue():
                freed += len(found)
        assert freed == 250
        assert book.counts() == {"a": {"pending": 250}}
    assert audit(tmp_path / "b") == []
