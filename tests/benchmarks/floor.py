"""Stages of raw SQLite: a table, an index, no events. What is faster than this does less."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.stages import PAYLOAD

TEXT = json.dumps(PAYLOAD, separators=(",", ":"))
ADD = "insert into jobs (payload, status) values (?, 'pending')"
NEXT = "select id, payload from jobs where status = 'pending' order by id limit ?"
CLAIM = "update jobs set status = 'leased' where id = ?"
SETTLE = "update jobs set status = 'done' where id = ?"


@contextmanager
def opened(folder: Path, durability: str) -> Iterator[sqlite3.Connection]:
    """A table of jobs; FULL for durability "full", else NORMAL."""
    connection = sqlite3.connect(folder / "raw.db", isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute(f"pragma synchronous = {'full' if durability == 'full' else 'normal'}")
    connection.execute("create table jobs (id integer primary key, payload text, status text)")
    connection.execute("create index pending on jobs (id) where status = 'pending'")
    try:
        yield connection
    finally:
        connection.close()


def enqueue(folder: Path, jobs: int, durability: str) -> float:
    """Jobs a second, one by one."""
    with opened(folder, durability) as connection:
        began = time.perf_counter()
        for _ in range(jobs):
            connection.execute(ADD, (TEXT,))
        return jobs / (time.perf_counter() - began)


def enqueue_batches(folder: Path, jobs: int, durability: str) -> float:
    """Jobs a second, a thousand at a time."""
    with opened(folder, durability) as connection:
        began = time.perf_counter()
        _fill(connection, jobs)
        return jobs / (time.perf_counter() - began)


def _fill(connection: sqlite3.Connection, jobs: int) -> None:
    for _ in range(0, jobs, 1000):
        connection.execute("begin immediate")
        connection.executemany(ADD, [(TEXT,)] * 1000)
        connection.execute("commit")


def work(folder: Path, jobs: int, durability: str, limit: int) -> float:
    """Jobs a second, claimed in one transaction and settled in another, ``limit`` at a time."""
    with opened(folder, durability) as connection:
        _fill(connection, jobs)
        began, done = time.perf_counter(), 0
        while ids := _claim(connection, limit):
            connection.execute("begin immediate")
            connection.executemany(SETTLE, ids)
            connection.execute("commit")
            done += len(ids)
        return done / (time.perf_counter() - began)


def _claim(connection: sqlite3.Connection, limit: int) -> list[tuple[int]]:
    connection.execute("begin immediate")
    ids = [(row[0],) for row in connection.execute(NEXT, (limit,)).fetchall()]
    connection.executemany(CLAIM, ids)
    connection.execute("commit")
    return ids
