"""The queue on SQLite beside raw SQLite (the floor) and other queues: section by section.

Each row says what was on. Full: every acknowledged change is on disk; interval: synced every n ms,
beside NORMAL. The log, its hash chain and the checks of payloads are always on; cache writes are
off; metrics only where a whole worker runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.measuring import Row, interleaved, stage

RAW = {"full": "raw SQLite, FULL", "interval": "raw SQLite, NORMAL"}
LITEQUEUE = "litequeue 0.14, one by one"


def measure(full: bool) -> Iterator[Row]:
    """All rows; ``full`` takes more jobs."""
    size = 5 if full else 1
    yield from _enqueue(1000 * size)
    yield from _threads(2000 * size)
    yield from _batches(10_000 * size)
    yield from _one_at_a_time(1000 * size)
    yield from _hundred_at_a_time(10_000 * size)
    yield from _two_processes(1000 * size)
    yield from _worker(100_000 if full else 10_000)
    yield from _sizes(5000)


def _enqueue(jobs: int) -> Iterator[Row]:
    for durability, target in (("full", 0.65), ("interval", 0.5)):
        got = interleaved(
            {
                "ours": stage("ours.enqueue", jobs, durability),
                "floor": stage("floor.enqueue", jobs, durability),
            }
        )
        name = f"enqueue one by one; {durability}, log on"
        yield Row.beside(name, got["ours"], got["floor"], RAW[durability], "job/s", target)


def _threads(jobs: int) -> Iterator[Row]:
    got = interleaved(
        {
            "many": stage("ours.enqueue_by_threads", jobs, threads=32),
            "one": stage("ours.enqueue_by_threads", jobs // 4, threads=1),
        }
    )
    name = "enqueue one by one by 32 threads; full, log on"
    yield Row.beside(name, got["many"], got["one"], "one thread of ours", "job/s", 4)


def _batches(jobs: int) -> Iterator[Row]:
    got = interleaved(
        {
            "ours": stage("ours.enqueue_batches", jobs),
            "floor": stage("floor.enqueue_batches", jobs),
            "litequeue": stage("peers.litequeue_enqueue_batches", jobs),
            "diskcache": stage("peers.diskcache_enqueue_batches", jobs),
        }
    )
    name = "enqueue in batches of 1,000; full, log on"
    yield Row.beside(name, got["ours"], got["floor"], RAW["full"], "job/s", 0.5)
    best = max(("litequeue", "diskcache"), key=lambda peer: got[peer].median)
    yield Row.beside(name, got["ours"], got[best], f"{best}, the best peer", "job/s", 2)


def _one_at_a_time(jobs: int) -> Iterator[Row]:
    for durability, floor_target, peer_target in (("full", 1.4, 2), ("interval", 0.6, 2.5)):
        got = interleaved(
            {
                "ours": stage("ours.work", jobs, durability, limit=1),
                "floor": stage("floor.work", jobs, durability, limit=1),
                "peer": stage("peers.litequeue_work", jobs, durability),
            }
        )
        name = f"claim + settle, fused, one at a time; {durability}, log on"
        floor = f"{RAW[durability]}, two changes"
        yield Row.beside(name, got["ours"], got["floor"], floor, "job/s", floor_target)
        yield Row.beside(name, got["ours"], got["peer"], LITEQUEUE, "job/s", peer_target)
    got = interleaved(
        {
            "ours": stage("ours.work", jobs, limit=1),
            "peer": stage("peers.persistqueue_work", jobs),
        }
    )
    name = "claim + settle, fused, one at a time; full, log on"
    yield Row.beside(name, got["ours"], got["peer"], "persist-queue, with ack", "job/s", 1)


def _hundred_at_a_time(jobs: int) -> Iterator[Row]:
    for durability, target in (("full", 0.65), ("interval", 0.6)):
        got = interleaved(
            {
                "ours": stage("ours.work", jobs, durability, limit=100),
                "floor": stage("floor.work", jobs, durability, limit=100),
                "peer": stage("peers.litequeue_work", min(jobs, 1000), durability),
            }
        )
        name = f"claim + settle, fused, 100 at a time; {durability}, log on"
        floor = f"{RAW[durability]}, the same"
        yield Row.beside(name, got["ours"], got["floor"], floor, "job/s", target)
        yield Row.beside(name, got["ours"], got["peer"], LITEQUEUE, "job/s", 15)


def _two_processes(jobs: int) -> Iterator[Row]:
    for durability, target in (("full", 1.0), ("interval", 0.8)):
        work = "ours.work_by_processes"
        got = interleaved(
            {
                "two": stage(work, jobs * 2, durability, limit=1, processes=2),
                "one": stage(work, jobs * 2, durability, limit=1, processes=1),
            }
        )
        name = f"claim + settle, fused, by two processes; {durability}, log on"
        yield Row.beside(name, got["two"], got["one"], "one process of ours", "job/s", target)


def _worker(jobs: int) -> Iterator[Row]:
    few = min(jobs, 2000)
    got = interleaved(
        {
            "ours": stage("ours.worker", jobs, threads=1),
            "floor": stage("floor.work", jobs, limit=100),
            "litequeue": stage("peers.litequeue_work", few),
            "huey": stage("peers.huey_worker", few),
        }
    )
    name = "whole worker, handler of nothing; full, log and metrics on"
    yield Row.beside(name, got["ours"], got["floor"], "raw SQLite, 100 at a time", "job/s", 0.2)
    best = max(("litequeue", "huey"), key=lambda peer: got[peer].median)
    yield Row.beside(name, got["ours"], got[best], f"{best}, the best peer", "job/s", 4)


def _sizes(jobs: int) -> Iterator[Row]:
    store = interleaved({"ours": stage("ours.store_bytes", jobs)}, rounds=1)["ours"]
    yield Row("a finished job in the store, payload not counted", store.median, 450, "allowed",
              "B", 1)  # fmt: skip
    segment = interleaved({"ours": stage("ours.segment_bytes", 2000)}, rounds=1)["ours"]
    yield Row("its three events in a compressed segment, payload not counted", segment.median, 180,
              "allowed", "B", 1)  # fmt: skip
