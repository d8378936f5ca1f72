"""Stages of other queues on SQLite, at the same durability and with their best batch calls.

pgqueuer and procrastinate run on PostgreSQL alone and are no peers here.
"""

from __future__ import annotations

import importlib
import json
import logging
import re
import sys
import threading
import time
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from tests.benchmarks.stages import PAYLOAD

TEXT = json.dumps(PAYLOAD, separators=(",", ":"))


def _queue(folder: Path, durability: str) -> Any:
    """A queue of litequeue 0.14, of which two lines of newer syntax are written for Python 3.11."""
    copy = folder / "peer" / "litequeue"
    copy.mkdir(parents=True)
    for path in Path(str(distribution("litequeue").locate_file("litequeue"))).glob("*.py"):
        text = re.sub(r"^type (\w+) = ", r"\1 = ", path.read_text("utf-8"), flags=re.MULTILINE)
        (copy / path.name).write_text(text, "utf-8")
    sys.path.insert(0, str(copy.parent))
    queue = importlib.import_module("litequeue").LiteQueue(folder / "litequeue.db")
    if durability == "full":
        queue.conn.execute("pragma synchronous = full")
    return queue


def litequeue_enqueue(folder: Path, jobs: int, durability: str) -> float:
    """Jobs a second, one by one."""
    queue = _queue(folder, durability)
    began = time.perf_counter()
    for _ in range(jobs):
        queue.put(TEXT)
    return jobs / (time.perf_counter() - began)


def litequeue_enqueue_batches(folder: Path, jobs: int, durability: str) -> float:
    """Jobs a second, a thousand in one of its transactions."""
    queue = _queue(folder, durability)
    began = time.perf_counter()
    _fill(queue, jobs)
    return jobs / (time.perf_counter() - began)


def _fill(queue: Any, jobs: int) -> None:
    for _ in range(0, jobs, 1000):
        with queue.transaction():
            for _ in range(1000):
                queue.put(TEXT)


def litequeue_work(folder: Path, jobs: int, durability: str) -> float:
    """Jobs a second: pop, then done; it has no call for many."""
    queue = _queue(folder, durability)
    _fill(queue, max(jobs, 1000))
    began = time.perf_counter()
    for _ in range(jobs):
        message = queue.pop()
        json.loads(message.data)
        queue.done(message.message_id, claim_id=message.claim_id)
    return jobs / (time.perf_counter() - began)


def diskcache_enqueue_batches(folder: Path, jobs: int, durability: str) -> float:
    """Jobs a second, a thousand in one of its transactions; it has no acknowledgement."""
    from diskcache import Deque

    queue = Deque(directory=str(folder / "deque"))
    queue.cache.reset("sqlite_synchronous", 2 if durability == "full" else 1)
    began = time.perf_counter()
    for _ in range(0, jobs, 1000):
        with queue.transact():
            queue.extend([TEXT] * 1000)
    return jobs / (time.perf_counter() - began)


def persistqueue_work(folder: Path, jobs: int, durability: str) -> float:
    """Jobs a second: get, then ack; always durable."""
    from persistqueue import SQLiteAckQueue

    queue = SQLiteAckQueue(str(folder / "persistqueue"), auto_commit=True)
    for _ in range(jobs):
        queue.put(TEXT)
    began = time.perf_counter()
    for _ in range(jobs):
        queue.ack(queue.get())
    return jobs / (time.perf_counter() - began)


def huey_worker(folder: Path, jobs: int, durability: str) -> float:
    """Jobs a second of its consumer with one thread, which acknowledges nothing."""
    from huey import SqliteHuey
    from huey.consumer import Consumer

    logging.getLogger("huey").setLevel(logging.ERROR)
    huey = SqliteHuey(filename=str(folder / "huey.db"), results=False, fsync=durability == "full")
    done, left = threading.Event(), jobs

    @huey.task()  # type: ignore[untyped-decorator]
    def nothing(payload: str) -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    for _ in range(jobs):
        nothing(TEXT)
    consumer = Consumer(huey, workers=1, periodic=False, initial_delay=0.001, max_delay=0.01)
    began = time.perf_counter()
    consumer.start()
    done.wait()
    took = time.perf_counter() - began
    consumer.stop(graceful=False)
    return jobs / took
