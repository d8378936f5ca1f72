"""Named faults of locks and of SQLite; the others are listed in README.md."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import threading
from pathlib import Path

from fault_steps import started

from tallybook import Book
from tallybook.testing import audit

HOLD = """
import sys, time
from tallybook import Book
with Book.open(sys.argv[1]) as book, book.hold():
    print("held", flush=True)
    time.sleep(600)
"""


def test_the_lock_of_a_killed_process_is_free_at_once(tmp_path: Path) -> None:
    """F12: no file says that somebody holds it; the kernel does, and forgets."""
    root = tmp_path / "b"
    holder = started(HOLD, root)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    holder.kill()
    holder.wait()
    with Book.open(root) as book:
        assert book.enqueue("a", 1).is_new


def test_a_pid_that_lives_as_another_program_locks_nothing(tmp_path: Path) -> None:
    """F13: whatever files a dead process left with a pid that exists again."""
    root = tmp_path / "b"
    with Book.open(root) as book:
        book.enqueue("a", 1)
    for name in ("log.lock", "log/lock", "log/writer.pid"):
        (root / name).write_text(f"{os.getppid()}\n")
    with Book.open(root) as book:
        assert book.enqueue("a", 2).is_new
    assert audit(root) == []


def test_a_claim_waits_for_a_writer_of_another_program(tmp_path: Path) -> None:
    """F18: begun for writing from the start, so that SQLite's busy timeout counts."""
    root = tmp_path / "b"
    with Book.open(root) as book:
        book.enqueue("a", 1)
        other = sqlite3.connect(root / "state.db", isolation_level=None, check_same_thread=False)
        other.execute("begin immediate")
        other.execute("create table others (n)")
        release = threading.Timer(0.4, lambda: other.execute("rollback"))
        release.start()
        job = book.claim("w")
        assert job is not None and job.payload == 1
        release.join()
        other.close()


def test_overlapping_readers_do_not_let_the_wal_grow(tmp_path: Path) -> None:
    """F19: our reads are short, so that each checkpoint finds a moment."""
    root = tmp_path / "b"
    read = """
import sys
from tallybook import Book
while True:
    with Book.read(sys.argv[1]) as book:
        book.counts(), book.jobs(limit=50)
    print(1, flush=True)
"""
    with Book.open(root) as book:
        book.enqueue("a", 0)
        readers = [started(read, root, stderr=subprocess.DEVNULL) for _ in range(3)]
        try:
            assert all(one.stdout and one.stdout.readline() for one in readers)
            for number in range(600):
                book.enqueue("a", {"n": number, "words": "x" * 2000})
            assert (root / "state.db-wal").stat().st_size < 32 * 1024 * 1024
        finally:
            for one in readers:
                one.kill()
                one.wait()
