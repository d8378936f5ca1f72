"""Stages of our own: a book on the real path, that is with log, hash chain, ids and checks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.stages import PAYLOAD

from tallybook import Book
from tallybook.book import New, Settled, Want
from tallybook.job import Job
from tallybook.log.compress import compress_closed
from tallybook.outcome import Outcome
from tallybook.packed import packed
from tallybook.worker.handlers import registered
from tallybook.worker.loop import Worker


@contextmanager
def opened(folder: Path, durability: str) -> Iterator[Book]:
    """A book; with ``durability`` as in the settings."""
    root = folder / "book"
    if not root.exists():
        root.mkdir()
        (root / "book.toml").write_text(f'[log]\ndurability = "{durability}"\n', "utf-8")
    with Book.open(root) as book:
        yield book


def enqueue(folder: Path, jobs: int, durability: str) -> float:
    """Jobs a second, one by one."""
    with opened(folder, durability) as book:
        began = time.perf_counter()
        for _ in range(jobs):
            book.enqueue("a", PAYLOAD)
        return jobs / (time.perf_counter() - began)


def enqueue_by_threads(folder: Path, jobs: int, durability: str, threads: int) -> float:
    """Jobs a second, one by one in each of some threads."""
    with opened(folder, durability) as book:
        each = jobs // threads
        work = [threading.Thread(target=_enqueue, args=(book, each)) for _ in range(threads)]
        began = time.perf_counter()
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        return each * threads / (time.perf_counter() - began)


def _enqueue(book: Book, jobs: int) -> None:
    for _ in range(jobs):
        book.enqueue("a", PAYLOAD)


def enqueue_batches(folder: Path, jobs: int, durability: str) -> float:
    """Jobs a second, a thousand at a time."""
    with opened(folder, durability) as book:
        began = time.perf_counter()
        fill(book, jobs)
        return jobs / (time.perf_counter() - began)


def fill(book: Book, jobs: int) -> None:
    """Enqueue many jobs."""
    for start in range(0, jobs, 1000):
        book.enqueue_many([New("a", PAYLOAD)] * min(1000, jobs - start))


def work(folder: Path, jobs: int, durability: str, limit: int) -> float:
    """Jobs a second, claimed and settled ``limit`` at a time: settle n with claim n + 1."""
    with opened(folder, durability) as book:
        fill(book, jobs)
        began = time.perf_counter()
        done = drained(book, limit)
        return done / (time.perf_counter() - began)


def drained(book: Book, limit: int, most: int | None = None) -> int:
    """Settle as done what can be claimed; returns how many jobs that were."""
    want = Want(f"w{os.getpid()}", ("a",), 60, limit)
    jobs, done = book.turn((), want).jobs, 0
    while jobs:
        done += len(jobs)
        more = want if most is None or done < most else None
        jobs = book.turn([_done(book, job) for job in jobs], more).jobs
    return done


def _done(book: Book, job: Job) -> Settled:
    started_at = job.updated_at
    worker = job.locked_by or ""
    return Settled(Outcome(job.job_id, job.topic, worker, job.lease_token, "done", started_at, 0.1))


def work_by_processes(
    folder: Path, jobs: int, durability: str, limit: int, processes: int
) -> float:
    """Jobs a second of some processes that claim and settle together."""
    with opened(folder, durability) as book:
        fill(book, jobs)
        code = (
            "import sys; from pathlib import Path; from tests.benchmarks import ours\n"
            f"with ours.opened(Path({str(folder)!r}), {durability!r}) as book:\n"
            "    print('ready', flush=True); sys.stdin.readline()\n"
            f"    print(ours.drained(book, {limit}))\n"
        )
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        work = [
            subprocess.Popen([sys.executable, "-c", code], **pipes)  # type: ignore[call-overload]
            for _ in range(processes)
        ]
        for process in work:
            process.stdout.readline()
        began = time.perf_counter()
        for process in work:
            process.stdin.write("go\n")
            process.stdin.flush()
        done = sum(int(process.stdout.readline()) for process in work)
        took = time.perf_counter() - began
        for process in work:
            process.communicate()
        return done / took


def among(folder: Path, jobs: int, durability: str, status: str) -> float:
    """Jobs a second, claimed and settled one at a time, where ``jobs`` are pending or done."""
    with opened(folder, durability) as book:
        fill(book, jobs)
        if status == "done":
            drained(book, 1000)
            fill(book, 1000)
        began = time.perf_counter()
        done = drained(book, 1, most=500)
        return done / (time.perf_counter() - began)


def worker(folder: Path, jobs: int, durability: str, threads: int) -> float:
    """Jobs a second of a whole worker: heartbeat, metrics, a handler that does nothing."""
    with opened(folder, durability) as book:
        fill(book, jobs)
    handlers = {"a": registered(lambda _: None)}
    whole = Worker(folder / "book", handlers, threads=threads, drain=True)
    began = time.perf_counter()
    whole.run()
    return jobs / (time.perf_counter() - began)


def store_bytes(folder: Path, jobs: int, durability: str) -> float:
    """Bytes of state.db a finished job, its payload not counted."""
    with opened(folder, durability) as book:
        fill(book, jobs)
        drained(book, 1000)
        empty = folder / "empty"
        empty.mkdir()
        with opened(empty, durability) as other:
            other.counts()
        book.close()
    size = (folder / "book" / "state.db").stat().st_size
    return (size - (empty / "book" / "state.db").stat().st_size) / jobs - 213


def segment_bytes(folder: Path, jobs: int, durability: str) -> float:
    """Bytes of a compressed segment for the three events of a job; the payloads hold no words to
    speak of, so that they do not count."""
    with opened(folder, durability) as book:
        for number in range(jobs):
            book.enqueue("a", {"id": f"{number:010}", "words": "x" * 183})
        drained(book, 1)
        plain = [path.name for path in book.layout.segments()]
    _roll(folder)
    with Book.open(folder / "book") as book:
        compress_closed(book.layout)
        return sum(packed(book.layout.log / name).stat().st_size for name in plain) / jobs


def _roll(folder: Path) -> None:
    """Let the next change open a segment, so that all before it are closed."""
    toml = folder / "book" / "book.toml"
    toml.write_text("[log]\nsegment_bytes = 1024\n", "utf-8")
    with Book.open(folder / "book") as book:
        book.enqueue("a", 1)
