"""Rows in: small logs written line by line, and a simulated book of any size."""

from __future__ import annotations

import heapq
import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from tallybook.event import Event
from tallybook.fold import MemoryTables, apply

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


def random_history(book: Path, seed: int, steps: int = 400) -> None:
    """Any legal history: jobs, cache and topics, over segments, boots and writers."""
    dice = random.Random(seed)  # noqa: S311 - histories, by a seed
    log, at, jobs = FoldedLog(book), 0.0, dict[str, "RandomJob"]()
    for step in range(steps):
        at += dice.choice([0, 0.001, 0.5, 20])
        chance = dice.random()
        if chance < 0.01:
            log.open_writer(f"{step:08x}" + "f" * 24, at)
        elif chance < 0.03:
            log.open_segment(at)
        elif chance < 0.25 or not jobs:
            job = RandomJob(f"job-{len(jobs)}", dice)
            jobs[job.name] = job
            order = _order(dice)
            log.enqueued(job.name, at, f"topic-{len(jobs) % 3}", **job.delay(at), **order)
            if "keep_latest" in order:
                _supersede(log, at, jobs, job.name)
        elif chance < 0.35:
            _random_entry(log, dice, at, step)
        elif chance < 0.38:
            name = dice.choice(["topic.paused", "topic.resumed"])
            log.event(name, at, topic=f"topic-{dice.randrange(4)}")
        else:
            standing = [job for job in jobs.values() if not log.waits(job.name)]
            dice.choice(standing).step(log, at)


class FoldedLog(Log):
    """A log that is folded as it is written, so that the fold says what may come next."""

    def __init__(self, book: Path) -> None:
        self.tables, self.ordinals = MemoryTables(), count()
        super().__init__(book)

    def open_writer(self, writer: str, at: float) -> None:
        """The lines that follow are those of a new writer."""
        previous = {"previous_writer": self.writer, "previous_seq": self.seq}
        self.writer, self.seq = writer, 0
        self.open_segment(at, **previous)

    def event(self, name: str, at: float, **fields: Any) -> int:
        """Append one event and fold it. Raises FoldRefused for one that is not legal."""
        seq = super().event(name, at, **fields)
        boot_id = fields.get("boot_id") or self.tables.boot_id
        stamp = seq, text(at), round(at * 1_000_000), self.writer, boot_id
        apply(self.tables, Event(name, fields, *stamp), next(self.ordinals))
        return seq

    def waits(self, job_id: str) -> bool:
        """Whether a job is not first of its ordering key, or its resource is taken."""
        job = self.tables.job(job_id)
        return job is not None and job.waits_for is not None


def _order(dice: random.Random) -> dict[str, Any]:
    """Sometimes a job has an ordering key, a resource, or takes the place of others."""
    order: dict[str, Any] = {}
    if dice.random() < 0.3:
        order["ordering_key"] = f"key-{dice.randrange(2)}"
        order |= {"keep_latest": True} if dice.random() < 0.3 else {}
    return order | ({"resource": f"r-{dice.randrange(3)}"} if dice.random() < 0.3 else {})


def _supersede(log: FoldedLog, at: float, jobs: dict[str, RandomJob], name: str) -> None:
    """The pending jobs of the ordering key of a job that takes their place are cancelled."""
    latest = log.tables.jobs[name]
    for job in list(log.tables.jobs.values()):
        same = (job.topic, job.ordering_key) == (latest.topic, latest.ordering_key)
        if same and job.status == "pending" and job.job_id != name:
            told = {"reason": "superseded", "superseded_by": name}
            log.event("job.cancelled", at, job_id=job.job_id, topic=job.topic, **told)
            jobs[job.job_id].status = "cancelled"


def _random_entry(log: Log, dice: random.Random, at: float, step: int) -> None:
    key = f"entry-{dice.randrange(12)}"
    if dice.random() < 0.25:
        log.event("cache.invalidated", at, key=key, reason="asked")
    else:
        value = dice.choice([1, 1.5, "x", None, [1, {"a": "\u00e9\U0001f600"}], {"n": step}])
        log.put(key, value, at, step)


class RandomJob:
    """A job that takes any legal step."""

    def __init__(self, name: str, dice: random.Random) -> None:
        self.name, self.dice = name, dice
        self.status, self.token, self.attempts, self.rescues = "pending", 0, 0, 0

    def delay(self, at: float) -> dict[str, Any]:
        """Sometimes the job is due later."""
        if self.dice.random() < 0.7:
            return {}
        return {"delay_ms": 2500, "next_attempt_at": text(at + 2.5)}

    def step(self, log: Log, at: float) -> None:
        """One event of this job."""
        if self.status != "pruned" and self.dice.random() < 0.1:
            log.event("job.deduplicated", at, job_id=self.name, topic="t", idempotency_key="k")
        elif self.status == "pending":
            self._from_pending(log, at)
        elif self.status == "leased":
            self._from_leased(log, at)
        elif self.status in ("done", "dead", "cancelled"):
            self._from_final(log, at)
        if self.token > 1 and self.status != "pruned" and self.dice.random() < 0.1:
            log.refused(self.name, at - 1, at, token=self.dice.randrange(1, self.token))

    def _from_pending(self, log: Log, at: float) -> None:
        if self.dice.random() < 0.1:
            self._move(log, at, "job.cancelled", "cancelled")
            return
        self.token += 1
        self.status = "leased"
        counts = {"attempt_count": self.attempts, "rescue_count": self.rescues}
        log.leased(self.name, at, f"w{self.dice.randrange(3)}", self.token, **counts)

    def _from_leased(self, log: Log, at: float) -> None:
        kind = self.dice.choice(
            ["extended", "done", "retry", "dead", "snoozed", "expired", "released", "cancelled"]
        )
        if kind == "extended":
            log.extended(self.name, at, token=self.token, started_at=text(at - 2))
        elif kind == "cancelled":
            self._move(log, at, "job.cancelled", "cancelled")
        elif kind == "expired":
            self.rescues += 1
            reason = self.dice.choice(["expired", "reboot"])
            log.expired(self.name, at, token=self.token, rescue_count=self.rescues, reason=reason)
            self.status = "pending"
        elif kind == "released":
            fields = {"lease_token": self.token, "rescue_count": self.rescues, "worker": "w1"}
            log.event("job.released", at, job_id=self.name, topic="t", reason="drained", **fields)
            self.status = "pending"
        else:
            self._settle(log, at, kind)

    def _settle(self, log: Log, at: float, kind: str) -> None:
        self.attempts += kind != "snoozed"
        fields: dict[str, Any] = {"attempt_count": self.attempts, "token": self.token}
        if kind in ("retry", "snoozed"):
            fields |= {"delay_ms": 500, "next_attempt_at": text(at + 0.5)}
        if kind in ("retry", "dead"):
            fields |= {"error_type": self.dice.choice(["A", "B", None])}
            fields |= {"error": f"bad {at}"} if fields["error_type"] else {}
        if kind == "done" and self.dice.random() < 0.5:
            fields |= {"result": {"n": self.token}}
        name = {"retry": "job.retry_scheduled"}.get(kind, f"job.{kind}")
        log.ended(name, self.name, at - 1, at, **fields)
        self.status = kind if kind in ("done", "dead") else "pending"

    def _from_final(self, log: Log, at: float) -> None:
        chance = self.dice.random()
        if self.status == "dead" and chance < 0.4:
            self.attempts = self.rescues = 0
            self._move(log, at, "job.requeued", "pending")
        elif self.status == "dead" and chance < 0.6:
            self._move(log, at, "job.discarded", "cancelled")
        elif chance < 0.7:
            self._move(log, at, "job.pruned", "pruned")

    def _move(self, log: Log, at: float, name: str, status: str) -> None:
        log.event(name, at, job_id=self.name, topic="t", reason="asked")
        self.status = status
