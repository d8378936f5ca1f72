"""The rest of the plain model: what people ask of jobs, what time takes away, and the cache."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from machine_leases import LeaseModel
from machine_order import FINAL, SECOND, Row

FITTING = {"requeue": ("dead", "cancelled"), "discard": ("dead",), "cancel": ("pending", "leased")}
FAR = 10**18


def same_key(one: Row, other: Row) -> bool:
    """Whether two jobs have one idempotency key that was given."""
    return bool(one["key"]) and (one["topic"], one["key"]) == (other["topic"], other["key"])


class BookModel(LeaseModel):
    """All verbs of a book."""

    def steer(self, rule: str, labels: Iterable[str]) -> None:
        there = {n for n in labels if n in self.jobs and self.jobs[n]["status"] in FITTING[rule]}
        for label in self.as_observed(there):
            getattr(self, rule)(label)

    def has_free_key(self, label: str) -> bool:
        """Whether no other job of its key is open or done: the open one of a key, else the newest,
        stands for it."""
        job = self.jobs[label]
        named = [n for n, one in self.jobs.items() if same_key(one, job)]
        still = [n for n in named if self.jobs[n]["status"] not in FINAL]
        stands = (still or named or [label])[-1]
        return stands == label or self.jobs[stands]["status"] in FITTING["requeue"]

    def requeue(self, label: str) -> None:
        if not self.has_free_key(label):
            return
        self.jobs[label] |= {"attempts": 0, "rescues": 0}
        self.expiry(self.jobs[label])
        self.free(label, "job.requeued")

    def discard(self, label: str) -> None:
        self.finish(label, "cancelled", "job.discarded")

    def cancel(self, label: str) -> None:
        if self.jobs[label]["status"] == "pending":
            self.finish(label, "cancelled", "job.cancelled")
        elif not self.jobs[label]["cancel"]:
            self.jobs[label]["cancel"] = True
            self.tell("job.cancel_requested", label)

    def repair(self, plan: str, steps: list[Row]) -> None:
        """The steps of a plan that fit: entries first, then jobs that are there, then new ones."""
        for step in steps:
            if "key" in step and step["forget"]:
                self.invalidate(step["key"])
            elif "key" in step:
                self.put(step["key"], 7)
        for rule in ("requeue", "cancel"):
            for step in steps:
                if step.get("rule") == rule:
                    getattr(self, rule)(step["job"])
        self.enqueue([step["new"] for step in steps if "new" in step])
        self.tell("plan.applied", plan)

    def switch(self, topic: str, pause: bool) -> bool:
        """Pause or resume; False where it was so before."""
        if pause == (topic in self.paused):
            return False
        self.paused = self.paused ^ {topic}
        self.tell("topic.paused" if pause else "topic.resumed", topic)
        return True

    def expire(self) -> None:
        over = [n for n, j in self.jobs.items() if j["status"] == "pending" and self.is_over(j)]
        for label in self.as_observed(over):
            self.die(label, "Expired")

    def prune(self) -> None:
        """Final jobs go when they are older than their topic keeps them and hold no key."""
        old = [label for label, job in self.jobs.items() if self.may_go(job)]
        if not self.clocks_agree:
            old = [label for label in old if label in self.observed("job.pruned")]
        for label in self.as_observed(old):
            del self.jobs[label]
            self.tell("job.pruned", label)

    def may_go(self, job: Row) -> bool:
        if job["status"] not in FINAL or self.holds_key(job):
            return False
        keep = self.rules[job["topic"]]["dead" if job["status"] == "dead" else "done"] * SECOND
        return bool(keep) and self.ended_for(job) >= keep

    # the cache

    def put(
        self,
        key: str,
        value: Any,
        base: int | None = None,
        ttl: int | None = None,
        depends: tuple[str, ...] = (),
        job: str | None = None,
    ) -> bool:
        """Write an entry over the version that it was made on; False where that has moved on."""
        version = self.entries[key]["version"] if key in self.entries else 0
        if base is not None and base != version:
            self.tell("conflict.detected", key)
            return False
        self.entries[key] = {
            "value": value, "version": version + 1, "ttl": ttl, "depends": depends, "job": job,
            "boot": self.boot, "now": self.now, "wall": self.wall,
        }  # fmt: skip
        self.tell("cache.put", key)
        return True

    def invalidate(self, key: str) -> bool:
        there = self.entries.pop(key, None) is not None
        if there:
            self.tell("cache.invalidated", key)
        return there

    def invalidate_dependents(self, key: str) -> None:
        for one in self.as_observed(self.dependents(key)):
            self.invalidate(one)

    def dependents(self, key: str) -> set[str]:
        """What depends on ``key``, and what depends on that; never ``key`` itself."""
        found: set[str] = set()
        ahead = [key]
        while ahead:
            asked = ahead.pop()
            new = {n for n, entry in self.entries.items() if asked in entry["depends"]} - found
            found |= new
            ahead += new
        return found - {key}

    def read(self, key: str, at_least: int) -> tuple[str, Any]:
        """What a reader gets, and why: absent, too old, expired or fresh."""
        entry = self.entries.get(key)
        if entry is None:
            return "absent", None
        if entry["version"] < at_least:
            return "too_old", None
        same_boot = entry["boot"] == self.boot
        age = self.now - entry["now"] if same_boot else self.wall - entry["wall"]
        if entry["ttl"] is not None and not 0 <= age < entry["ttl"] * SECOND:
            return "expired", None
        return "fresh", entry["value"]

    # what can be asked

    def counts(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for job in self.jobs.values():
            numbers = found.setdefault(job["topic"], {})
            numbers[job["status"]] = numbers.get(job["status"], 0) + 1
        return found

    def locks(self) -> dict[str, tuple[str, int]]:
        """{resource: the job that has it and its lease}."""
        leased = {n: job for n, job in self.jobs.items() if job["status"] == "leased"}
        return {job["res"]: (n, job["token"]) for n, job in leased.items() if job["res"]}

    def next_due(self) -> int | None:
        """µs until a job may be claimed that now may not: it is due, or its topic has a token."""
        waits = [
            wait
            for job in self.jobs.values()
            if job["status"] == "pending" and self.waits_for(job) is None
            for wait in (job["due"] - self.now, (job["at"] or -FAR) - self.wall)
        ]
        waits += [self.next_token(topic) for topic in self.rules if self.rules[topic]["rate"]]
        return min((wait for wait in waits if wait > 0), default=None)

    def next_token(self, topic: str) -> int:
        """µs until a token, where pending jobs wait for nothing else; else 0."""
        jobs = [job for job in self.jobs.values() if job["topic"] == topic]
        number = [job["status"] for job in jobs].count("leased")
        is_free = not self.rules[topic]["running"] or number < self.rules[topic]["running"]
        if topic in self.paused or not is_free or all(j["status"] != "pending" for j in jobs):
            return 0
        spare = (self.rules[topic]["burst"] - 1) * self.interval(topic)
        return self.buckets.get(topic, 0) - self.now - spare
