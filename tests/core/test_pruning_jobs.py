"""Pruning of jobs that ended long ago: how long they are kept, in small changes, the log keeps."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from core_steps import claim, job_of, names, outcome

from tallybook import Book
from tallybook.book import New, Settled, Want
from tallybook.book.ageing import Ageing
from tallybook.book.folding import fold_history
from tallybook.cli.main import main
from tallybook.testing import FakeClock
from tallybook.worker.handlers import registered
from tallybook.worker.loop import Worker

DAY_S = 86400


def end(book: Book, jobs: int, settle: str = "done", topic: str = "a") -> None:
    """Enqueue jobs and end them."""
    book.enqueue_many([New(topic, n) for n in range(jobs)])
    claimed = book.turn((), Want("w", (topic,), 60, jobs)).jobs
    book.turn([Settled(outcome(book, job, settle)) for job in claimed])


def left(book: Book) -> dict[str, int]:
    """Jobs that are in the tables, by status."""
    return {status: n for status, n in book.counts().get("a", {}).items() if n}


def test_done_jobs_are_kept_for_a_week_and_dead_ones_for_ever(book: Book, clock: FakeClock) -> None:
    end(book, 3)
    end(book, 2, "dead")
    clock.advance(7 * DAY_S - 1)
    assert book.prune() == []
    clock.advance(1)
    assert len(book.prune()) == 3
    assert left(book) == {"dead": 2}
    clock.advance(1000 * DAY_S)
    assert book.prune() == []


@pytest.fixture
def strict(tmp_path: Path, clock: FakeClock) -> Iterator[Book]:
    """A book whose topic a keeps little: done for an hour, dead for two."""
    root = tmp_path / "strict"
    root.mkdir()
    (root / "book.toml").write_text(
        "[topics.a]\nkeep_done_s = 3600\nkeep_dead_s = 7200\ndedupe_window_s = 0\n"
    )
    with Book.open(root, clock=clock) as opened:
        yield opened


def test_the_times_of_a_topic_are_its_own(strict: Book, clock: FakeClock) -> None:
    end(strict, 2)
    end(strict, 2, "dead")
    end(strict, 1, topic="b")
    clock.advance(3600)
    assert {job.status for job in strict.prune()} == {"done"}
    clock.advance(3600)
    assert {job.status for job in strict.prune()} == {"dead"}
    assert strict.counts()["b"]["done"] == 1


def test_a_job_that_holds_its_key_is_not_pruned(strict: Book, clock: FakeClock) -> None:
    settings = strict.layout.settings
    settings.write_text("[topics.a]\nkeep_done_s = 10\ndedupe_window_s = 100\n")
    with Book.open(strict.layout.root, clock=clock) as book:
        end(book, 1)
        clock.advance(99)
        assert book.prune() == []
        clock.advance(1)
        assert len(book.prune()) == 1


def test_a_dry_run_names_the_jobs_and_changes_nothing(strict: Book, clock: FakeClock) -> None:
    end(strict, 5)
    clock.advance(3600)
    assert len(strict.prune(3, dry_run=True)) == 3
    assert left(strict) == {"done": 5}
    assert "job.pruned" not in names(strict)
    assert len(strict.prune(3)) == 3
    assert left(strict) == {"done": 2}


def test_a_beat_prunes_at_most_200_jobs_in_one_change_and_claims_go_on(
    strict: Book, clock: FakeClock
) -> None:
    end(strict, 450)
    clock.advance(3600)
    strict.enqueue("a", "now")
    ageing = Ageing(strict)
    assert len(ageing.step()) == 200
    assert claim(strict).payload == "now"
    assert [len(ageing.step()) for _ in range(3)] == [200, 50, 0]
    assert left(strict) == {"leased": 1}


def test_a_walk_passes_over_jobs_that_stay_and_rests_at_the_end(
    strict: Book, clock: FakeClock
) -> None:
    strict.enqueue_many([New("a", n, delay_s=30 * DAY_S) for n in range(1200)])
    end(strict, 3, topic="a")
    clock.advance(3600)
    ageing = Ageing(strict)
    assert [len(ageing.step()) for _ in range(2)] == [0, 3]
    end(strict, 2)
    clock.advance(3600)
    assert sum(len(ageing.step()) for _ in range(3)) == 2


def test_what_is_pruned_is_folded_away_and_the_log_still_traces_it(
    strict: Book, clock: FakeClock, capsys: pytest.CaptureFixture[str]
) -> None:
    end(strict, 1)
    (job,) = strict.jobs()
    clock.advance(3600)
    strict.prune()
    assert strict.job(job.job_id) is None
    assert fold_history(strict.layout)[0].jobs == {}
    assert main(["trace", job.job_id, "--book", str(strict.layout.root), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["events"]
    assert [e["event"] for e in told] == ["job.enqueued", "job.leased", "job.done", "job.pruned"]
    assert told[-1]["reason"] == "done"


def test_after_a_reboot_the_time_is_counted_on(strict: Book, clock: FakeClock) -> None:
    end(strict, 1)
    clock.advance(3000)
    clock.reboot(500)
    assert strict.prune() == []
    clock.advance(100)
    assert len(strict.prune()) == 1


def test_the_command_prunes_in_bounds_and_tells_of_a_dry_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, clock = tmp_path / "old", FakeClock()
    with Book.open(root, clock=clock) as book:
        end(book, 5)

    def told(*options: str) -> dict[str, object]:
        assert main(["jobs", "prune", *options, "--book", str(root), "--json"]) == 0
        found: dict[str, object] = json.loads(capsys.readouterr().out)
        return found

    assert told("--dry-run")["pruned"] == 5
    assert told("--limit", "2") == {
        "dry_run": False, "pruned": 2, "done": 2, "dead": 0, "cancelled": 0,
    }  # fmt: skip
    assert told()["pruned"] == 3
    assert main(["jobs", "prune", "--book", str(root)]) == 0
    assert capsys.readouterr().out == "no job is older than its topic keeps it\n"
    assert main(["jobs", "prune", "--limit", "0", "--book", str(root)]) == 2
    assert "--limit 0" in capsys.readouterr().err


def test_a_worker_prunes_and_expires_at_its_beats(tmp_path: Path) -> None:
    root, clock = tmp_path / "old", FakeClock()
    with Book.open(root, clock=clock) as book:
        end(book, 3)
        waits = book.enqueue("b", 1, delay_s=3600, expires_after_s=60).job_id
    worker = Worker(root, {"c": registered(lambda job: job.payload)}, threads=1)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        with Book.open(root) as book:
            deadline = time.monotonic() + 30
            while left(book) or job_of(book, waits).status != "dead":
                assert time.monotonic() < deadline
                time.sleep(0.05)
    finally:
        worker.stop()
        thread.join()
