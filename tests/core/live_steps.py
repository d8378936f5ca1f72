"""Real workers for the tests of what keeps them alive: started, killed, stopped, looked at."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core_steps import events

from tallybook import Book

HANDLERS = """
import os, time
from pathlib import Path
from tallybook import handler

@handler("ok")
def ok(job):
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000

@handler("slow")
def slow(job):
    Path(f"running-{job.lease_token}").write_text(str(os.getpid()))
    time.sleep(job.payload if job.lease_token == 1 else 0)
    return job.lease_token

@handler("slow.and.large")
def slow_and_large(job):
    slow(job)
    return "x" * 50_000

@handler("forks")
def forks(job):
    if job.lease_token == 1:
        child = os.fork()
        if child == 0:
            time.sleep(30)
            os._exit(0)
        Path("child").write_text(str(child))
        time.sleep(30)

@handler("kills")
def kills(job):
    os.kill(os.getpid(), 9)

@handler("watches")
def watches(job, ctx):
    Path("watching").touch()
    deadline = time.monotonic() + 20
    while not ctx.cancelled and time.monotonic() < deadline:
        time.sleep(0.02)
    Path("told").write_text(str(ctx.cancelled))
"""


class Place:
    """A folder with a book and handlers, and the processes that a test starts in it."""

    def __init__(self, root: Path, toml: str = "") -> None:
        self.root = root
        self.book = root / "book"
        self.started: list[subprocess.Popen[str]] = []
        (root / "handlers.py").write_text(HANDLERS)
        self.book.mkdir()
        (self.book / "book.toml").write_text(toml)

    def worker(self, *options: str, **environment: str) -> subprocess.Popen[str]:
        """A worker process; by default one thread and a lease of a minute."""
        command = [sys.executable, "-m", "tallybook", "worker", "handlers", "--book", self.book]
        process = subprocess.Popen(
            [*command, "--threads", "1", *options],
            cwd=self.root,
            env={**os.environ, **environment},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def beating(self, *options: str, **environment: str) -> subprocess.Popen[str]:
        """As ``worker``, once its heartbeat file is there."""
        before = len(self.named("worker.started"))
        process = self.worker(*options, **environment)
        until(lambda: len(self.named("worker.started")) > before)
        return process

    def put(self, topic: str, payload: object = None, **fields: Any) -> str:
        """Enqueue a job; returns its id."""
        with Book.open(self.book) as book:
            return book.enqueue(topic, payload, **fields).job_id

    def named(self, name: str) -> list[dict[str, Any]]:
        """The events of one name in the log; none where there is no log yet."""
        if not (self.book / "log").is_dir():
            return []
        return [event for event in events(self.book) if event["event"] == name]

    def end(self) -> None:
        """Kill what still runs, also children that lost their parent."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stderr:
                process.stderr.close()
        for pid in {event["pid"] for event in self.named("worker.started")}:
            if str(self.book) in command_of(pid):
                os.kill(pid, signal.SIGKILL)


def command_of(pid: int) -> str:
    """How a process was started; empty where there is none."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def until(condition: Callable[[], object], seconds: float = 30) -> None:
    """Wait for a condition; the test fails where it does not come."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.005)


@contextmanager
def holding(book: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of the log of ``book``."""
    code = """
import sys, time
from tallybook import Book
with Book.open(sys.argv[1]) as book, book.hold():
    print("held", flush=True)
    time.sleep(600)
"""
    command = [sys.executable, "-c", code, str(book)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()
