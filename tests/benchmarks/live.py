"""Stages with real worker processes: waking, idling, and the death of one."""

from __future__ import annotations

import os
import resource
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.ours import fill, opened

from tallybook import Book

HANDLERS = """
import time
from tallybook import handler

def tell(job):
    with open("seen", "a") as file:
        file.write(f"{job.payload} {time.monotonic_ns()}\\n")

@handler("quick")
def quick(job):
    tell(job)

@handler("long")
def long(job):
    tell(job)
    time.sleep(600 if job.lease_token == 1 else 0)
"""


def _start(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    (folder / "bench_handlers.py").write_text(HANDLERS, "utf-8")
    command = [sys.executable, "-m", "tallybook", "worker", "bench_handlers", "--book", "book"]
    path = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(Path.cwd())])
    environment = os.environ | {"PYTHONPATH": path}
    return subprocess.Popen([*command, *words], cwd=folder, env=environment)


def _seen(folder: Path, lines: int) -> list[tuple[str, int]]:
    """What the handlers told, once there are so many lines."""
    path = folder / "seen"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        told = path.read_text("utf-8").splitlines() if path.exists() else []
        if len(told) >= lines and told[-1].count(" ") == 1:
            return [(name, int(at)) for name, _, at in (line.partition(" ") for line in told)]
        time.sleep(0.002)
    raise TimeoutError(f"{folder}: fewer than {lines} runs in a minute")


def _warm(folder: Path, book: Book) -> None:
    book.enqueue("quick", "warm")
    _seen(folder, 1)
    time.sleep(0.3)


def wake_ms(folder: Path, jobs: int, durability: str) -> float:
    """Median milliseconds from the end of an enqueue to the start of the handler."""
    with opened(folder, durability) as book:
        process = _start(folder, "--threads", "1")
        try:
            _warm(folder, book)
            waits = []
            for number in range(jobs):
                book.enqueue("quick", number)
                enqueued = time.monotonic_ns()
                name, started = _seen(folder, number + 2)[-1]
                assert name == str(number)
                waits.append((started - enqueued) / 1e6)
                time.sleep(0.05)
        finally:
            process.kill()
            process.wait()
    return max(statistics.median(waits), 0.001)


def idle_percent(folder: Path, jobs: int, durability: str) -> float:
    """CPU of a worker that waits, in percent of one core; ``jobs`` is for how many seconds."""
    with opened(folder, durability) as book:
        process = _start(folder)
        try:
            _warm(folder, book)
            time.sleep(1)
            before = _cpu_s(process.pid)
            time.sleep(jobs)
            return max((_cpu_s(process.pid) - before) / jobs * 100, 0.001)
        finally:
            process.kill()
            process.wait()


def _cpu_s(pid: int) -> float:
    times = Path(f"/proc/{pid}/schedstat").read_text("ascii").split()
    threads = Path(f"/proc/{pid}/task")
    if threads.exists():
        return sum(
            int((thread / "schedstat").read_text("ascii").split()[0]) / 1e9
            for thread in threads.iterdir()
        )
    return int(times[0]) / 1e9


def restart_ms(folder: Path, jobs: int, durability: str) -> float:
    """Milliseconds from the kill -9 of a worker in mid-job to its job's start elsewhere."""
    with opened(folder, durability) as book:
        first = _start(folder, "--threads", "1", "--name", "first")
        try:
            _warm(folder, book)
            book.enqueue("long", "long")
            _seen(folder, 2)
            second = _start(folder, "--threads", "1", "--name", "second")
            time.sleep(2)
            killed = time.monotonic_ns()
            first.send_signal(signal.SIGKILL)
            _, started = _seen(folder, 3)[-1]
        finally:
            for process in (first, second):
                process.kill()
                process.wait()
    return (started - killed) / 1e6


def status_s(folder: Path, jobs: int, durability: str) -> float:
    """Seconds that ``tallybook status`` takes on a book of so many jobs."""
    with opened(folder, "interval") as book:
        fill(book, jobs)
    words = [sys.executable, "-m", "tallybook", "status", "--book", str(folder / "book")]
    return min(_seconds(words) for _ in range(3))


def _seconds(words: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(words, check=True, capture_output=True)
    return time.perf_counter() - began


def memory_mb(folder: Path, jobs: int, durability: str) -> float:
    """Peak memory of a process that enqueues and settles so many jobs in batches, in MB."""
    from tests.benchmarks.ours import drained

    with opened(folder, "interval") as book:
        fill(book, jobs)
        drained(book, 1000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
