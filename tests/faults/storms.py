"""Storms: many processes, kills, full disks and wrong clocks, short in CI and long in torture.

Each returns its figures; each raises where a promise does not hold.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fault_steps import started, until

from tallybook import Book
from tallybook.book import New
from tallybook.layout import Layout
from tallybook.log.reader import history
from tallybook.testing import audit

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
HANDLERS = """
import os, select, time
from tallybook import Retry, handler

if "LD_PRELOAD" in os.environ:  # libfaketime breaks the clock_nanosleep that time.sleep is
    time.sleep = lambda seconds: select.select([], [], [], seconds) and None

@handler("a")
def a(job, ctx):
    time.sleep(float(os.environ.get("STORM_JOB_S", "0.01")))
    if job.payload % 7 == 0 and job.attempt_count == 0:
        raise Retry("once more")
    ctx.cache.put(f"k{job.payload % 50}", job.payload)
"""
TOML = "[topics.a]\nbackoff_first_s = 0.05\nmax_rescues = 1000\n[log]\nsegment_bytes = 65536\n"
ENQUEUE = """
import sys
from tallybook import Book
from tallybook.errors import TallybookError
with Book.open(sys.argv[1]) as book:
    for number in range(int(sys.argv[2])):
        try:
            print(book.enqueue("a", number, correlation_id="x" * 100).job_id, flush=True)
        except TallybookError:
            print("refused", flush=True)
"""
CLAIM = """
import sys, time
from tallybook import Book
from tallybook.book import Settled, Want
from tallybook.clock import to_text
from tallybook.outcome import Outcome
with Book.open(sys.argv[1]) as book:
    want = Want(sys.argv[2], lease_s=60)
    sys.stdin.read()
    found = book.claim_many(want)
    while found:
        job, now = found[0], to_text(book.moment().now)
        print(job.job_id, flush=True)
        done = Outcome(job.job_id, job.topic, sys.argv[2], job.lease_token, "done", now, 1.0)
        found = book.turn([Settled(done)], want).jobs
"""


def made(place: Path) -> Path:
    """A book with handlers beside it."""
    (place / "storm_handlers.py").write_text(HANDLERS)
    book = place / "book"
    book.mkdir()
    (book / "book.toml").write_text(TOML)
    return book


def filled(book: Path, jobs: int) -> set[str]:
    """Enqueue jobs; returns their ids."""
    with Book.open(book) as opened:
        made = opened.enqueue_many([New("a", number) for number in range(jobs)])
        return {receipt.job_id for receipt in made}


def worker(place: Path, *options: str, **env: str) -> subprocess.Popen[bytes]:
    """A worker process of the book at ``place``."""
    words = ("worker", "storm_handlers", "--threads", "2", *options)
    command = [sys.executable, "-m", "tallybook", *words]
    return subprocess.Popen(
        command, cwd=place, env={**os.environ, **env}, stderr=subprocess.DEVNULL
    )


def require_done(book: Path, jobs: set[str]) -> Counter[str]:
    """Every job is done and the book is sound; counts its events by name."""
    with Book.read(book) as opened:
        ends = {job.job_id: job.status for job in opened.jobs(limit=10**6)}
    lost = {job_id: ends.get(job_id) for job_id in jobs if ends.get(job_id) != "done"}
    assert lost == {}
    assert audit(book) == []
    return Counter(event.name for event, _ in history(Layout(book)))


def drain(place: Path) -> None:
    assert worker(place, "--drain", "--lease", "2").wait(timeout=600) == 0


def kills(place: Path, seed: int, count: int, processes: int = 4) -> str:
    """Workers killed at random moments, again and again, while jobs come in."""
    dice, began = random.Random(seed), time.monotonic()  # noqa: S311
    book = made(place)
    jobs = filled(book, count * 8)
    more = started(ENQUEUE, book, count * 2)
    workers = [worker(place, "--lease", "0.6") for _ in range(processes)]
    for _ in range(count):
        time.sleep(dice.uniform(0.01, 0.3))
        at = dice.randrange(processes)
        workers[at].kill()
        workers[at].wait()
        workers[at] = worker(place, "--lease", "0.6")
    jobs |= set(more.communicate()[0].split())
    for one in workers:
        one.terminate()
    for one in workers:
        one.wait()
    drain(place)
    seen = require_done(book, jobs)
    return figures("kills", seed, began, jobs, seen) + f", {count} kills of {processes} workers"


def crowd(place: Path, seed: int, processes: int, jobs: int) -> str:
    """Many processes that claim at the same moment."""
    began, book = time.monotonic(), made(place)
    wanted = filled(book, jobs)
    crowd = [
        started(CLAIM, book, f"w{number}", stdin=subprocess.PIPE) for number in range(processes)
    ]
    for one in crowd:
        assert one.stdin is not None
        one.stdin.close()
    told = [one.stdout.read().split() for one in crowd if one.stdout]
    assert [one.wait() for one in crowd] == [0] * processes
    claimed = Counter(job_id for words in told for job_id in words)
    assert set(claimed) == wanted
    assert max(claimed.values()) == 1, "a job was claimed twice"
    seen = require_done(book, wanted)
    return figures("crowd", seed, began, wanted, seen) + f", {processes} processes"


def full_disk(place: Path, seed: int, jobs: int, fills: int) -> str:
    """A disk that runs full at random moments and gets room again."""
    dice, began = random.Random(seed), time.monotonic()  # noqa: S311
    with small_disk(place) as disk:
        book = disk / "book"
        with Book.open(book) as opened:
            first = opened.enqueue("a", 0).job_id
        process = started(ENQUEUE, book, jobs)
        assert process.stdout is not None
        told = [process.stdout.readline().strip()]
        for _ in range(fills):
            time.sleep(dice.uniform(0.005, 0.05))
            fill_up(disk / "junk")
            time.sleep(dice.uniform(0.005, 0.05))
            (disk / "junk").unlink()
        told += process.communicate()[0].split()
        assert process.returncode == 0
        kept = {word for word in told if word != "refused"}
        assert kept, "nothing was ever acknowledged"
        with Book.open(book) as opened:
            there = {job.job_id for job in opened.jobs(limit=10**6)}
        assert there == kept | {first}
        assert audit(book) == []
        refused = told.count("refused")
        seen = Counter(event.name for event, _ in history(Layout(book)))
    return figures("full disk", seed, began, kept, seen) + f", {fills} fills, {refused} refused"


@contextmanager
def small_disk(place: Path) -> Iterator[Path]:
    """A disk of 12 MB in memory; needs the right to mount."""
    disk = place / "disk"
    disk.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(disk)], check=True, timeout=30
    )
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True, timeout=30)


def can_mount() -> bool:
    """Whether this process may mount a file system."""
    return os.geteuid() == 0 and shutil.which("mount") is not None and _tried()


def _tried() -> bool:
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(command, capture_output=True, timeout=30).returncode == 0


def fill_up(junk: Path) -> None:
    """Write until the disk takes no more."""
    try:
        with junk.open("wb", buffering=0) as file:
            while file.write(bytes(65536)) == 65536:
                pass
    except OSError:
        return


def clocks(place: Path, seed: int, jobs: int, jumps: int) -> str:
    """Workers whose wall clocks differ by hours and jump; no live job may be taken."""
    dice, began = random.Random(seed), time.monotonic()  # noqa: S311
    book = made(place)
    wanted = filled(book, jobs)
    files = [place / f"time-{number}" for number in range(4)]
    for file in files:
        file.write_text(offset(dice))
    workers = [worker(place, "--lease", "3", STORM_JOB_S="0.3", **faked(file)) for file in files]
    for _ in range(jumps):
        time.sleep(dice.uniform(0.05, 0.3))
        dice.choice(files).write_text(offset(dice))
    until(lambda: done(book) == jobs, 300)
    for one in workers:
        one.send_signal(signal.SIGTERM)
    assert [one.wait(timeout=60) for one in workers] == [0] * 4
    seen = require_done(book, wanted)
    assert seen["job.lease_expired"] == 0, "a live job was taken"
    assert spread_h(book) > 1, "the clocks were not moved"
    return figures("clocks", seed, began, wanted, seen) + f", {jumps} jumps"


def done(book: Path) -> int:
    """How many jobs are done; opened anew, since a reader of a busy book may hold a copy."""
    with Book.read(book) as opened:
        return opened.counts().get("a", {}).get("done", 0)


def offset(dice: random.Random) -> str:
    return f"{dice.choice('+-')}{dice.randrange(1, 30)}h"


def faked(file: Path) -> dict[str, str]:
    """The environment of a process whose wall clock follows ``file``."""
    return {
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def spread_h(book: Path) -> float:
    """How many whole hours of the day the events of a book name."""
    return len({event.occurred_at[:13] for event, _ in history(Layout(book))})


def figures(name: str, seed: int, began: float, jobs: Any, seen: Counter[str]) -> str:
    """One line of what happened."""
    return (
        f"{name}: seed {seed}, {len(jobs)} jobs, 0 lost, {sum(seen.values())} events, "
        f"{seen['job.lease_expired']} rescues, {seen['job.settle_refused']} refused settles, "
        f"{time.monotonic() - began:.1f} s"
    )
