"""Any legal history, by a seed: what the fold of the runtime takes, in any order."""

from __future__ import annotations

import random
from itertools import count
from pathlib import Path
from typing import Any

from ops_logs import Log, text

from tallybook.event import Event
from tallybook.fold import MemoryTables, apply


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
