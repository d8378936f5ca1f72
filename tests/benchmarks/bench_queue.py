"""The queue on SQLite, durability full, beside raw SQLite at FULL with no events (the floor)."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.measuring import Row, beside

from tallybook import Book
from tallybook.job import Outcome

PAYLOAD = {"id": "0123456789", "words": "x" * 180}
FLOOR = "raw SQLite, FULL"


def measure(full: bool) -> Iterator[Row]:
    """Enqueue one by one; claim and settle one by one in two changes."""
    jobs = 5000 if full else 1000
    ours, floor = beside(lambda: _enqueue(jobs), lambda: _raw_enqueue(jobs))
    yield Row("enqueue one by one, log on", ours, floor, FLOOR, "job/s", 0.65)
    ours, floor = beside(lambda: _work(jobs), lambda: _raw_work(jobs))
    yield Row("claim, then settle, one by one, log on", ours, floor, FLOOR, "job/s", 0.65)


def _enqueue(jobs: int) -> float:
    with tempfile.TemporaryDirectory(dir=".") as folder, Book.open(Path(folder) / "b") as book:
        began = time.perf_counter()
        for _ in range(jobs):
            book.enqueue("a", PAYLOAD)
        return jobs / (time.perf_counter() - began)


def _work(jobs: int) -> float:
    with tempfile.TemporaryDirectory(dir=".") as folder, Book.open(Path(folder) / "b") as book:
        for _ in range(jobs):
            book.enqueue("a", PAYLOAD)
        began = time.perf_counter()
        while job := book.claim("w"):
            started_at = book.moment().wall()
            book.settle(Outcome(job.job_id, "a", "w", job.lease_token, "done", started_at, 0.1))
        return jobs / (time.perf_counter() - began)


def _raw(folder: str) -> sqlite3.Connection:
    connection = sqlite3.connect(Path(folder) / "raw.db", isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    connection.execute("create table jobs (id integer primary key, payload, status)")
    connection.execute("create index pending on jobs (id) where status = 'pending'")
    return connection


def _raw_enqueue(jobs: int) -> float:
    with tempfile.TemporaryDirectory(dir=".") as folder:
        connection = _raw(folder)
        began = time.perf_counter()
        _raw_fill(connection, jobs)
        rate = jobs / (time.perf_counter() - began)
        connection.close()
    return rate


def _raw_fill(connection: sqlite3.Connection, jobs: int) -> None:
    for _ in range(jobs):
        sql = "insert into jobs (payload, status) values (?, 'pending')"
        connection.execute(sql, (str(PAYLOAD),))


def _raw_work(jobs: int) -> float:
    claim = (
        "update jobs set status = 'leased' where id = "
        "(select id from jobs where status = 'pending' order by id limit 1) returning id"
    )
    with tempfile.TemporaryDirectory(dir=".") as folder:
        connection = _raw(folder)
        _raw_fill(connection, jobs)
        began = time.perf_counter()
        while row := connection.execute(claim).fetchone():
            connection.execute("update jobs set status = 'done' where id = ?", row)
        rate = jobs / (time.perf_counter() - began)
        connection.close()
    return rate
