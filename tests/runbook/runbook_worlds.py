"""Books for the self-tests of runbooks, by a seed: a clean one, and one a runbook with faults.

Each is a log of fifteen days, some hundred jobs of two topics, folded into a real state.db. A
builder of faults gives what its runbook must find: (kind, ids), notes left out where they only say
that all is well.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from ops_logs import Log, text

from tallybook.book import Book

Expected = list[tuple[str, tuple[str, ...]]]

DAY = 86_400.0
DAYS = 15
A_DAY = 14
TOPICS = ("airports.sync", "runways.sync")


class World:
    """A log that begins clean, and is spoiled by who plants faults."""

    def __init__(self, book: Path, seed: int = 1) -> None:
        self.book, self.log, self.jobs = book, Log(book), 0
        self.dice = random.Random(seed)  # noqa: S311 - a world, by a seed
        self.log.event("worker.started", 0, worker="w1", threads=2, pid=7)
        for day in range(DAYS):
            self.day(day)
        self.end = DAYS * DAY

    def day(self, day: int) -> None:
        """A day of jobs that end at their first try."""
        for number in range(A_DAY):
            self.done(day * DAY + number * 3_000 + self.dice.uniform(1, 900))

    def arrives(self, at: float, topic: str = TOPICS[0]) -> str:
        """A job arrives; returns its id."""
        self.jobs += 1
        name = f"j{self.jobs:04d}"
        self.log.enqueued(name, at, topic)
        return name

    def done(self, at: float, took: float = 0.0) -> str:
        """A job that arrives, is run and done, and writes an entry of the cache."""
        topic = TOPICS[self.jobs % 2]
        name, took = self.arrives(at, topic), took or self.dice.uniform(0.5, 1.5)
        begin = at + self.dice.uniform(0.1, 0.3)
        self.log.leased(name, begin, topic=topic)
        self.log.ended("job.done", name, begin, begin + took, topic=topic)
        self.log.put(f"entry-{name}", {"job": name}, begin + took)
        return name

    def died(self, at: float, error_type: str, **fields: object) -> str:
        """A job that arrives and is dead after one run."""
        name = self.arrives(at)
        self.log.leased(name, at + 0.2)
        self.dies(name, at + 0.2, 1, error_type, **fields)
        return name

    def dies(self, name: str, begin: float, token: int, error_type: str, **fields: object) -> None:
        """A run that ends in the dead letters."""
        told = {"error_type": error_type, "error": f"{error_type} it said", "attempt_count": 1}
        self.log.ended("job.dead", name, begin, begin + 1, token=token, **{**told, **fields})

    def fold(self) -> None:
        """Fold state.db from the log, as any process that opens the book does."""
        with Book.open(self.book, create=False):
            pass


def keys(*names: str) -> tuple[str, ...]:
    """The idempotency keys of jobs."""
    return tuple(f"key-{name}" for name in names)


def clean(book: Path, seed: int = 1) -> Expected:
    """Nothing is wrong."""
    World(book, seed).fold()
    return []


def throughput_latency(book: Path, seed: int = 1) -> Expected:
    """A lost answer, a retry, a dead letter, an answer that was replayed, a job left open."""
    world, log = World(book, seed), None
    log, at = world.log, world.end
    lost = world.arrives(at)
    log.leased(lost, at + 1)
    retry = {"delay_ms": 500, "next_attempt_at": text(at + 3), "error": "gone"}
    log.ended("job.retry_scheduled", lost, at + 1, at + 2, error_type="AnswerLost", **retry)
    log.leased(lost, at + 4, token=2)
    log.ended("job.done", lost, at + 4, at + 5, token=2, replayed=True)
    dead = world.died(at + 6, "HTTP 422", http_status=422)
    left = world.arrives(at + 9)
    world.fold()
    return [
        ("answer_lost", keys(lost)),
        ("retried", keys(lost)),
        ("dead", keys(dead)),
        ("delivered_twice", keys(lost)),
        ("open_jobs", keys(left)),
    ]


def stuck_leases(book: Path, seed: int = 1) -> Expected:
    """A killed worker, one whose late result is refused, a late settle, a lease still held."""
    world = World(book, seed)
    log, at = world.log, world.end
    killed, refused, late, held = (world.arrives(at + n) for n in range(4))
    for name in (killed, refused, late):
        log.leased(name, at + 5, "w2")
    log.ended("job.done", late, at + 6, at + 66, "w2")
    log.expired(killed, at + 70, "w2", reason="worker_dead")
    log.expired(refused, at + 70, "w2")
    for name in (killed, refused):
        log.leased(name, at + 71, token=2)
        log.ended("job.done", name, at + 71, at + 72, token=2)
    log.refused(refused, at + 6, at + 80, "w2")
    log.leased(held, at + 81, "w3")
    log.event("worker.stopped", at + 200, worker="w1", reason="drained")
    world.fold()
    return [
        ("stuck_lease", keys(killed, refused, held)),
        ("late_settle_refused", keys(refused)),
        ("settled_late", keys(late)),
    ]


def cache_rebuild(book: Path, seed: int = 1) -> Expected:
    """Behind the back of the log one entry is changed, one deleted, one added."""
    world = World(book, seed)
    world.fold()
    with closing(sqlite3.connect(book / "state.db")) as state, state:
        state.execute("update cache set value = '{\"job\":\"x\"}' where key = 'entry-j0003'")
        state.execute("delete from cache where key = 'entry-j0004'")
        state.execute("create temp table stray as select * from cache where key = 'entry-j0005'")
        state.execute("update stray set key = 'stray'")
        state.execute("insert into cache select * from stray")
    return [
        ("cache_differs", ("entry-j0003",)),
        ("cache_lost", ("entry-j0004",)),
        ("cache_unknown", ("stray",)),
    ]


def dead_letters(book: Path, seed: int = 1) -> Expected:
    """Three that an outage killed, two that the other side refuses, one that came back."""
    world = World(book, seed)
    at = world.end
    down = [world.died(at + n * 10, "HTTP 503", http_status=503) for n in range(3)]
    refused = [world.died(at + 40 + n * 10, "HTTP 422", http_status=422) for n in range(2)]
    again = world.died(at + 70, "KeyError")
    world.log.event("job.requeued", at + 80, job_id=again, topic=TOPICS[0], reason="by hand")
    world.log.leased(again, at + 81, token=2)
    world.dies(again, at + 81, 2, "KeyError")
    world.fold()
    return [
        ("dead_letters", keys(*down)),
        ("dead_letters", keys(*refused)),
        ("dead_letters", keys(again)),
        ("came_back", keys(again)),
    ]


def backlog(book: Path, seed: int = 1) -> Expected:
    """A topic is paused while its jobs wait, and a job of another one is due for an hour."""
    world = World(book, seed)
    at = world.end
    world.log.event("topic.paused", at, topic=TOPICS[0], reason="by hand")
    for number in range(4):
        world.arrives(at + number, TOPICS[number == 3])
    world.done(at + 3_700)
    world.fold()
    return [
        ("topic_paused", (TOPICS[0],)),
        ("waits_long", TOPICS),
        ("drains", ()),
    ]


def settings_review(book: Path, seed: int = 1) -> Expected:
    """A run that outlasts its lease, and a job that dies of its last attempt."""
    world = World(book, seed)
    slow = world.arrives(world.end)
    world.log.leased(slow, world.end + 1)
    world.log.ended("job.done", slow, world.end + 1, world.end + 91)
    world.died(world.end + 100, "HTTP 503", reason="out_of_attempts")
    world.fold()
    names = ("lease", "timeout_s", "max_attempts")
    return [("unsafe_setting", (f"{TOPICS[0]}.{name}",)) for name in names]


def log_health(book: Path, seed: int = 1) -> Expected:
    """The clock is set back by an hour, a repair is told, and a line is edited afterwards."""
    world = World(book, seed)
    log, at = world.log, world.end
    skewed = log.event("topic.resumed", at - 3_600, boot_us=round(at * 1e6), topic=TOPICS[0])
    repaired = log.event("log.repaired", at + 1, reason="torn tail", bytes=17)
    world.fold()
    lines = log.path.read_bytes().splitlines(keepends=True)
    edited = next(n for n, line in enumerate(lines) if n > 40 and b"cache.put" in line)
    lines[edited] = lines[edited].replace(b'"job":"j', b'"job":"x')
    log.path.write_bytes(b"".join(lines))
    short = log.writer[:8]
    return [
        ("edited", (log.path.name,)),
        ("clock_set", (f"{short}:{skewed}", f"{short}:{repaired}")),
        ("repaired", (f"{short}:{repaired}",)),
    ]


def log_with_a_hole(book: Path, seed: int = 1) -> Expected:
    """A line is torn in the middle of the log, and two are gone."""
    world = World(book, seed)
    world.fold()
    path = world.log.path
    lines = path.read_bytes().splitlines(keepends=True)
    torn, first = 60, json.loads(lines[90])["seq"]
    lines[torn] = lines[torn][:20] + b"\n"
    path.write_bytes(b"".join(lines[:90] + lines[92:]))
    short = world.log.writer[:8]
    return [
        ("quarantined", (f"{path.name}:{torn + 1}",)),
        ("gap", (f"{short}:{torn + 1}-{torn + 1}", f"{short}:{first}-{first + 1}")),
    ]


def weekly_review(book: Path, seed: int = 1) -> Expected:
    """This week runs take three times as long, one kind of error is new, and one job died of it;
    one of the week before has not ended."""
    world = World(book, seed)
    left = world.arrives(world.end - 7.5 * DAY)
    for number in range(40):
        world.done(world.end - 2 * DAY + number * 60, took=4 + number / 10)
    dead = world.died(world.end - 5_000, "NewTrouble")
    world.fold()
    return [
        ("slower", ("run",)),
        ("slower", ("total",)),
        ("more_failures", ()),
        ("dead", keys(dead)),
        ("new_error", ("NewTrouble",)),
        ("left_open", keys(left)),
    ]


FAULTS: list[tuple[str, Callable[[Path], Expected]]] = [
    ("throughput_latency", throughput_latency),
    ("stuck_leases", stuck_leases),
    ("cache_rebuild", cache_rebuild),
    ("dead_letters", dead_letters),
    ("backlog", backlog),
    ("settings_review", settings_review),
    ("log_health", log_health),
    ("log_health", log_with_a_hole),
    ("weekly_review", weekly_review),
]
