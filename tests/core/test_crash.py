"""Real kills, a real full disk, real stopped processes: nothing acknowledged is lost."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from core_steps import segments

from tallybook import Book
from tallybook.book.folding import fold_history
from tallybook.errors import LockHeld, TallybookError
from tallybook.layout import Layout
from tallybook.log.verify import verify

ENQUEUE_FOR_EVER = """
import sys
from tallybook import Book
with Book.open(sys.argv[1]) as book:
    for number in range(10**9):
        receipt = book.enqueue("a", {"n": number, "words": "x" * 200})
        print(receipt.job_id, flush=True)
"""
HOLD_THE_LOCK = """
import sys, time
from tallybook import Book
with Book.open(sys.argv[1]) as book, book.hold():
    print("held", flush=True)
    time.sleep(600)
"""


def started(code: str, book: Path) -> subprocess.Popen[str]:
    """A Python process that runs ``code`` on ``book``."""
    command = [sys.executable, "-c", code, str(book)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("seed", range(8))
def test_a_job_whose_enqueue_returned_survives_a_kill_at_any_moment(
    tmp_path: Path, seed: int
) -> None:
    book = tmp_path / "b"
    process = started(ENQUEUE_FOR_EVER, book)
    assert process.stdout is not None
    acknowledged = [process.stdout.readline().strip()]
    time.sleep(random.Random(seed).uniform(0.0, 0.15))  # noqa: S311
    process.kill()
    acknowledged += process.stdout.read().split()
    process.wait()
    with Book.open(book) as opened:
        kept = {job.job_id for job in opened.jobs(limit=10**6)}
    assert set(acknowledged) <= kept
    assert len(kept) <= len(acknowledged) + 1
    assert verify(Layout(book)).complete


def test_a_full_disk_refuses_the_change_and_keeps_all_before_it(tmp_path: Path) -> None:
    root = tmp_path / "b"
    with Book.open(root) as book:
        first = book.enqueue("a", {"n": 1})
        (segment,) = segments(book)
        limit = segment.stat().st_size + 100
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            with pytest.raises(TallybookError, match="cannot append"):
                book.enqueue("a", {"n": 2, "words": "x" * 1000})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert segment.read_bytes().endswith(b"\n")
        assert book.counts() == {"a": {"pending": 1}}
        second = book.enqueue("a", {"n": 3})
    tables, _ = fold_history(Layout(root))
    assert set(tables.jobs) == {first.job_id, second.job_id}


def test_who_waits_for_a_stopped_holder_is_told_which_process_and_what_to_do(
    tmp_path: Path,
) -> None:
    root = tmp_path / "b"
    root.mkdir()
    (root / "book.toml").write_text("[log]\nlock_wait_s = 0.3\n")
    with Book.open(root) as book:
        holder = started(HOLD_THE_LOCK, root)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        os.kill(holder.pid, signal.SIGSTOP)
        try:
            with pytest.raises(LockHeld, match=rf"{holder.pid}, which is stopped: continue it"):
                book.enqueue("a", 1)
        finally:
            holder.kill()
            holder.wait()
        assert book.enqueue("a", 2).is_new


def test_a_forked_child_may_not_use_the_book_and_does_not_free_its_lock(tmp_path: Path) -> None:
    root = tmp_path / "b"
    root.mkdir()
    (root / "book.toml").write_text("[log]\nlock_wait_s = 0.2\n")
    with Book.open(root) as book, book.hold():
        child = os.fork()
        if child == 0:
            try:
                book.enqueue("a", 1)
            except TallybookError as error:
                os._exit(7 if "opened in process" in str(error) else 8)
            os._exit(9)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        code = "import sys; from tallybook import Book; Book.open(sys.argv[1])"
        other = subprocess.run(
            [sys.executable, "-c", code, str(root)], capture_output=True, text=True
        )
        assert "LockHeld" in other.stderr


def test_two_processes_enqueue_into_one_log_with_no_line_lost_or_mixed(tmp_path: Path) -> None:
    root = tmp_path / "b"
    code = """
import sys
from tallybook import Book
with Book.open(sys.argv[1]) as book:
    for number in range(100):
        book.enqueue("a", {"n": number}, idempotency_key=f"k{number}")
"""
    both = [started(code, root), started(code, root)]
    assert [process.wait() for process in both] == [0, 0]
    lines = [json.loads(line) for line in segments(root)[0].read_bytes().splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    kinds = [line["event"] for line in lines]
    assert (kinds.count("job.enqueued"), kinds.count("job.deduplicated")) == (100, 100)
