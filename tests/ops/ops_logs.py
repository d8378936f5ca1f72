"""Rows in: small logs written line by line, and a simulated book of any size."""

from __future__ import annotations

import heapq
import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2026, 11, 29, 10, 0, tzinfo=UTC)
WRITER = "0190aaaa" + "0" * 24


def text(at: float) -> str:
    """The time ``at`` seconds after the start, as the log writes it."""
    moment = START + timedelta(microseconds=round(at * 1_000_000))
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Log:
    """Writes the events of one writer into ``book``; each method returns the number it used."""

    def __init__(self, book: Path, writer: str = WRITER, at: float = 0, **previous: Any) -> None:
        self.book, self.writer, self.seq = book, writer, 0
        (book / "log").mkdir(parents=True, exist_ok=True)
        self.open_segment(at, **previous)

    def open_segment(self, at: float, boot_id: str = "boot-1", **previous: Any) -> int:
        """Start a segment; the lines that follow go there."""
        self.path = self.book / "log" / f"{self.writer[:8]}-{self.seq + 1:012d}.ndjson"
        opened = {
            "writer": self.writer, "node_id": "node-1", "host": "host-1", "pid": 7,
            "boot_id": boot_id, "versions": {"tallybook": "0.1.0"}, "previous_hash": "00" * 32,
        }  # fmt: skip
        return self.event("log.opened", at, **opened, **previous)

    def event(self, name: str, at: float, **fields: Any) -> int:
        """Append one event at ``at`` seconds."""
        self.seq += 1
        line = {"v": 1, "seq": self.seq, "event": name, "occurred_at": text(at),
                "boot_us": round(at * 1_000_000), **fields}  # fmt: skip
        self.raw(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        return self.seq

    def raw(self, data: bytes) -> None:
        """Append bytes as they are."""
        with self.path.open("ab") as file:
            file.write(data)

    def enqueued(self, job: str, at: float, topic: str = "airports.sync", **fields: Any) -> int:
        """A job enqueued."""
        given = {"payload": {"job": job}, "payload_digest": "d", "priority": 0,
                 "idempotency_key": f"key-{job}", "max_attempts": 10, **fields}  # fmt: skip
        return self.event("job.enqueued", at, job_id=job, topic=topic, **given)

    def leased(self, job: str, at: float, worker: str = "w1", token: int = 1, **fields: Any) -> int:
        """A lease of 60 s."""
        given = {"lease_ms": 60_000, "locked_until": text(at + 60), "attempt_count": 0,
                 "rescue_count": 0, **fields}  # fmt: skip
        return self._lease("job.leased", job, at, worker, token, **given)

    def extended(
        self, job: str, at: float, worker: str = "w1", token: int = 1, **fields: Any
    ) -> int:
        """A lease extended by 60 s."""
        given = {"lease_ms": 60_000, "locked_until": text(at + 60), **fields}
        return self._lease("job.extended", job, at, worker, token, **given)

    def ended(
        self,
        name: str,
        job: str,
        started: float,
        at: float,
        worker: str = "w1",
        token: int = 1,
        **fields: Any,
    ) -> int:
        """A handler that ran from ``started`` to ``at``: job.done, job.retry_scheduled, ..."""
        given = {"started_at": text(started), "duration_ms": round((at - started) * 1000, 3),
                 "attempt_count": token, **fields}  # fmt: skip
        return self._lease(name, job, at, worker, token, **given)

    def expired(
        self, job: str, at: float, worker: str = "w1", token: int = 1, **fields: Any
    ) -> int:
        """A lease that its holder did not end."""
        given = {"locked_until": text(at), "rescue_count": 1, "reason": "expired", **fields}
        return self._lease("job.lease_expired", job, at, worker, token, **given)

    def refused(
        self, job: str, started: float, at: float, worker: str = "w1", token: int = 1, **fields: Any
    ) -> int:
        """A settle that came too late."""
        given = {"settle": "done", "started_at": text(started), "reason": "lease over",
                 "duration_ms": round((at - started) * 1000, 3), **fields}  # fmt: skip
        return self._lease("job.settle_refused", job, at, worker, token, **given)

    def put(self, key: str, value: Any, at: float, version: int = 1, **fields: Any) -> int:
        """A cache entry written."""
        return self.event("cache.put", at, key=key, value=value, version=version, **fields)

    def _lease(self, name: str, job: str, at: float, worker: str, token: int, **fields: Any) -> int:
        given = {"topic": "airports.sync", "worker": worker, "lease_token": token, **fields}
        return self.event(name, at, job_id=job, **given)


ERRORS = (("AnswerLost", None), ("HTTP 503", 503), ("HTTP 429", 429), ("TimedOut", None))


class Simulation:
    """A queue with workers, retries, dead letters, expired leases and late settles, by a seed."""

    def __init__(self, book: Path, seed: int = 1, jobs: int = 1000, workers: int = 8) -> None:
        self.log = Log(book)
        self.random = random.Random(seed)  # noqa: S311 - a simulation
        self.jobs, self.workers = jobs, workers
        self.waiting: list[tuple[float, int, Callable[[float], None]]] = []
        self.counter = 0
        self.pending: list[tuple[str, int, int]] = []
        self.idle = [f"host-1-{number:08x}" for number in range(workers)]

    def later(self, at: float, do: Callable[[float], None]) -> None:
        """Do something at a time."""
        self.counter += 1
        heapq.heappush(self.waiting, (at, self.counter, do))

    def run(self) -> None:
        """Write the whole history."""
        at = 0.0
        for number in range(self.jobs):
            at += self.random.expovariate(12 + 8 * (number % 500 < 200))
            job = f"0193-{number:06d}"
            topic = "airports.sync" if number % 5 else "runways.sync"
            self.later(at, lambda now, job=job, topic=topic: self.enqueue(job, topic, now))
        while self.waiting:
            now, _, do = heapq.heappop(self.waiting)
            do(now)

    def enqueue(self, job: str, topic: str, now: float) -> None:
        """A job arrives."""
        self.log.enqueued(job, now, topic)
        self.offer(job, 1, 0, now)

    def offer(self, job: str, token: int, attempts: int, now: float) -> None:
        """A job may be claimed."""
        self.pending.append((job, token, attempts))
        self.claim(now)

    def claim(self, now: float) -> None:
        """Idle workers take what is pending."""
        while self.pending and self.idle:
            job, token, attempts = self.pending.pop(0)
            worker = self.idle.pop(0)
            self.log.leased(job, now, worker, token, attempt_count=attempts)
            started = now + self.random.expovariate(50)
            run = self.random.lognormvariate(-1.2, 0.6)
            settle = self.fate(job, worker, token, attempts, started)
            self.later(started + run, settle)

    def fate(
        self, job: str, worker: str, token: int, attempts: int, started: float
    ) -> Callable[[float], None]:
        """How this lease ends."""
        chance = self.random.random()
        ending = {"worker": worker, "token": token}

        def done(now: float) -> None:
            self.log.put(f"airport:{job}", {"job": job, "n": token}, now, token, job_id=job)
            replayed = {"replayed": True} if token > 1 and self.random.random() < 0.4 else {}
            self.log.ended("job.done", job, started, now, http_status=200, **ending, **replayed)
            self.free(worker, now)

        def retry(now: float) -> None:
            kind, status = self.random.choice(ERRORS)
            delay = 2 ** min(attempts, 5) * self.random.random()
            fields = {"error_type": kind, "error": f"{kind} at try {attempts + 1}",
                      "attempt_count": attempts + 1, "delay_ms": round(delay * 1000),
                      "next_attempt_at": text(now + delay)}  # fmt: skip
            if status:
                fields["http_status"] = status
            self.log.ended("job.retry_scheduled", job, started, now, **ending, **fields)
            self.later(now + delay, lambda at: self.offer(job, token + 1, attempts + 1, at))
            self.free(worker, now)

        def dead(now: float) -> None:
            fields = {"error_type": "HTTP 422", "error": "refused", "reason": "permanent"}
            self.log.ended("job.dead", job, started, now, http_status=422, **ending, **fields)
            self.free(worker, now)

        def lost(now: float) -> None:
            self.later(now + 5, lambda at: self.rescue(job, worker, token, attempts, started, at))

        return dead if chance < 0.01 else lost if chance < 0.014 else (
            retry if chance < 0.09 else done
        )  # fmt: skip

    def rescue(
        self, job: str, worker: str, token: int, attempts: int, started: float, now: float
    ) -> None:
        """The lease is over; its holder comes back later and is refused."""
        self.log.expired(job, now, worker, token)
        self.offer(job, token + 1, attempts, now)

        def late(at: float) -> None:
            self.log.refused(job, started, at, worker, token, replayed=True)
            self.free(worker, at)

        self.later(now + 3, late)

    def free(self, worker: str, now: float) -> None:
        """A worker is idle again."""
        self.idle.append(worker)
        self.claim(now)
