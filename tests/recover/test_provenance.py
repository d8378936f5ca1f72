"""``cache get KEY --history``: every write with job, attempt, worker, time and log position."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recover_logs import HandLog, lines, write

from tallybook import Book
from tallybook.book import Settled
from tallybook.cli.main import main
from tallybook.entry import Put
from tallybook.job import Job
from tallybook.outcome import Outcome
from tallybook.testing import FakeClock


def history(capsys: pytest.CaptureFixture[str], root: Path, key: str) -> tuple[int, Any]:
    code = main(["cache", "get", key, "--history", "--json", "--book", str(root)])
    return code, json.loads(capsys.readouterr().out)


def settled(book: Book, job: Job, settle: str, worker: str) -> Outcome:
    return Outcome(
        job_id=job.job_id,
        topic=job.topic,
        worker=worker,
        lease_token=job.lease_token,
        settle=settle,
        started_at=book.moment().wall(),
        duration_ms=1.0,
        correlation_id=None,
    )


def test_each_write_is_told_with_the_job_the_attempt_and_the_worker_that_made_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = FakeClock()
    root = tmp_path / "b"
    with Book.open(root, clock=clock) as book:
        job_id = book.enqueue("a", 1).job_id
        first = book.claim("w-1")
        assert first
        book.turn([Settled(settled(book, first, "retry", "w-1"))])
        clock.advance(600)
        second = book.claim("w-2")
        assert second
        book.turn([Settled(settled(book, second, "done", "w-2"), [Put("k", {"n": 1}, etag="e")])])
        book.invalidate("k", reason="by test")
    code, told = history(capsys, root, "k")
    put, gone = told["writes"]
    assert code == 0 and told["complete"]
    assert (put["job_id"], put["attempt"], put["worker"], put["lease_token"]) == (
        job_id, 2, "w-2", 2,
    )  # fmt: skip
    assert (put["value"], put["version"], put["seq"]) == ({"n": 1}, 1, 6)
    assert put["segment"].startswith(put["writer"][:8])
    assert (gone["event"], gone["reason"], gone["job_id"]) == ("cache.invalidated", "by test", None)
    assert main(["cache", "get", "k", "--history", "--book", str(root)]) == 0
    shown = capsys.readouterr().out
    assert "w-2" in shown and "seq 6" in shown and '{"n": 1}' in shown


def test_of_a_damaged_log_what_is_left_is_told_and_the_code_is_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = HandLog(tmp_path / "b")
    log.live([("put", "a", 1), ("put", "a", 2), ("put", "a", 3)])
    (path,) = (log.root / "log").iterdir()
    write(path, [line for line in lines(path) if b'"seq":3' not in line])
    code, told = history(capsys, log.root, "a")
    assert (code, told["complete"]) == (4, False)
    assert [one["value"] for one in told["writes"]] == [1, 3]
    assert main(["cache", "get", "b", "--history", "--book", str(log.root)]) == 4
    assert "no event" in capsys.readouterr().err
