"""What a book is to do, as plainly as it can be said: dictionaries, and no rule of tallybook's own.

Written from docs/concepts.md, so that ``test_machine`` can hold a book to it.
A job is named by its label. Times are whole µs; ``wall`` counts from the start of the fake clock.
Each verb changes the state and ``tell`` s its events one by one, with the state after each.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from machine_order import FINAL, SECOND, OrderModel, Row


class KeyTaken(Exception):
    """An idempotency key belongs to a job with another payload."""


class TopicFull(Exception):
    """A topic would have more jobs pending than it may."""


class Model(OrderModel):
    """Also cache entries by key, and topics that are paused."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: dict[str, Row] = {}
        self.paused: set[str] = set()
        self.boot = ""
        self.wall = 0
        self.told: list[tuple[tuple[str, str], Self]] = []
        self.seen: list[tuple[str, str]] = []
        self.clocks_agree = True

    def at(self, wall: int, now: int, boot: str, seen: list[tuple[str, str]]) -> Self:
        """This state as the next change finds it; ``seen`` is what the log says of that change."""
        after = self.copy()
        after.wall, after.now, after.seen = wall, now, seen
        if self.boot and boot != self.boot:
            after.reboot()
        after.boot = boot
        return after

    def copy(self) -> Self:
        copied = type(self)()
        copied.__dict__ |= self.__dict__ | {"told": [], "paused": set(self.paused)}
        copied.jobs = {label: dict(job) for label, job in self.jobs.items()}
        copied.entries, copied.buckets = dict(self.entries), dict(self.buckets)
        return copied

    def tell(self, name: str, about: str) -> None:
        self.told.append(((name, about), self.copy()))

    def observed(self, *names: str) -> list[str]:
        return [about for name, about in self.seen if name in names]

    def as_observed(self, labels: Iterable[str]) -> list[str]:
        """Labels in the order in which the log has them, where no order is promised."""
        order = [about for _, about in self.seen]
        return sorted(labels, key=lambda one: order.index(one) if one in order else len(order))

    # time

    def reboot(self) -> None:
        """Leases are over; what is left of waits is taken from wall time; buckets are full."""
        self.buckets.clear()
        for job in self.jobs.values():
            if job["status"] in FINAL:
                continue
            if job["expires"]:
                left = self.left(job["expires_wall"], job["expires_after"])
                job["expires"] = max(self.now + left, 1)
            if job["status"] == "leased":
                job["lease"] = None
            elif job["due"]:
                left = self.left(job["shown"], job["delay"])
                job["due"] = self.now + left
                self.clocks_agree = self.clocks_agree and left > 0  # all overdue are due now

    def left(self, until: int, whole: int) -> int:
        return min(max(until - self.wall, 0), whole)

    def is_over(self, job: Row) -> bool:
        return 0 < job["expires"] <= self.now

    def is_late(self, job: Row) -> bool:
        return job["lease"] is None or job["lease"] <= self.now

    def ended_for(self, job: Row) -> int:
        boot, now, wall = job["ended"]
        return self.now - now if boot == self.boot else max(self.wall - wall, 0)

    # enqueue

    def enqueue(self, new: list[Row]) -> list[tuple[str, bool, tuple[str, ...]]]:
        """All of them or none; the label of each job, whether it is new, which it superseded.

        A key that a job has before, or gets from an earlier one of these, stays that job's.
        """
        keys = {(one["topic"], one.get("key")) for one in new if one.get("key")}
        first = {key: self.holder(*key) for key in keys}
        found = []
        for one in new:
            key = (one["topic"], one.get("key"))
            found.append(self.enqueue_one(first.get(key), **one))
            first[key] = first.get(key) or one["label"]
        return found

    def enqueue_one(
        self, first: str | None, label: str, topic: str, payload: Any, **more: Any
    ) -> tuple[str, bool, tuple[str, ...]]:
        if first and more.get("key"):
            if self.jobs[first]["payload"] != payload:
                raise KeyTaken
            self.tell("job.deduplicated", first)
            return first, False, ()
        job = {
            "topic": topic, "payload": payload, "key": more.get("key"), "status": "pending",
            "priority": more.get("priority", 0), "attempts": 0, "rescues": 0, "token": 0,
            "holder": None, "lease": None, "cancel": False, "error": None, "result": None,
            "created": self.wall, "expires_after": (more.get("expires") or 0) * SECOND,
            "order": more.get("order"), "res": more.get("res"), "holds": False,
        }  # fmt: skip
        self.jobs[label] = job
        self.expiry(job)
        self.wait(job, more.get("delay") or None, more.get("at"))
        self.tell("job.enqueued", label)
        superseded = self.pending_in_line(job) if more.get("latest") else []
        for old in superseded:
            self.finish(old, "cancelled", "job.cancelled")
        self.require_room(topic)
        return label, True, tuple(superseded)

    def require_room(self, topic: str) -> None:
        jobs = [j for j in self.jobs.values() if (j["topic"], j["status"]) == (topic, "pending")]
        if 0 < self.rules[topic]["pending"] < len(jobs):
            raise TopicFull

    def holder(self, topic: str, key: str) -> str | None:
        """The job that has the key: the open one, else the newest, for the window."""
        named = [n for n, job in self.jobs.items() if (job["topic"], job["key"]) == (topic, key)]
        still = [name for name in named if self.jobs[name]["status"] not in FINAL]
        if still:
            return still[-1]
        return named[-1] if named and self.holds_key(self.jobs[named[-1]]) else None

    def holds_key(self, job: Row) -> bool:
        window = self.rules[job["topic"]]["window"] * SECOND
        return job["status"] not in FINAL or self.ended_for(job) < window

    def expiry(self, job: Row) -> None:
        job["expires"] = job["expires_after"] and self.now + job["expires_after"]
        job["expires_wall"] = self.wall + job["expires_after"]

    def wait(self, job: Row, delay: float | None, at: int | None = None) -> None:
        """Due after a delay (seconds) by boot time, or at a time by the wall, or now."""
        job["delay"] = job["due"] = job["at"] = job["shown"] = 0
        if delay is not None:
            job["delay"] = round(delay * SECOND)
            job["due"], job["shown"] = self.now + job["delay"], self.wall + job["delay"]
        elif at is not None:
            job["at"] = job["shown"] = at

    # claim

    def due(self, topics: Iterable[str]) -> list[str]:
        """By priority, then due time, then age."""
        fitting = [
            label
            for label, job in self.jobs.items()
            if job["status"] == "pending"
            and job["topic"] not in self.paused
            and (not topics or job["topic"] in topics)
            and job["due"] <= self.now
            and (not job["at"] or job["at"] <= self.wall)
            and self.waits_for(job) is None
        ]
        return sorted(fitting, key=lambda n: (-self.jobs[n]["priority"], self.due_since(n)))

    def due_since(self, label: str) -> int:
        return int(self.jobs[label]["shown"] or self.jobs[label]["created"])

    def claim(self, worker: str, topics: Iterable[str], limit: int, lease: int) -> list[str]:
        return self.take(worker, lease, *self.choose(topics, limit))

    def choose(self, topics: Iterable[str], limit: int) -> tuple[list[str], list[str]]:
        """Jobs that expired, which die on the way, and those to lease. Which of the expired ones
        behind the last one to lease die is seen in the log."""
        due = self.due(topics)
        fit = [label for label in due if not self.is_over(self.jobs[label])]
        over = set(self.observed("job.dead")) & set(due) - set(fit)
        fair = self.together(fit)
        taken = self.alone(fair[:limit])
        if not self.is_exact(due, fit):
            return self.as_observed(over), self.as_good(fit, taken, limit, bool(over))
        ahead = due[: due.index(fair[limit - 1])] if len(fair) >= limit else due
        return self.as_observed(over | set(ahead) - set(fit)), taken

    def alone(self, labels: list[str]) -> list[str]:
        """A job that was rescued is claimed alone."""
        rescued = [place for place, label in enumerate(labels) if self.jobs[label]["rescues"]]
        return labels[: max(rescued[0], 1)] if rescued else labels

    def is_exact(self, due: list[str], fit: list[str]) -> bool:
        """Whether it is promised which jobs a claim takes. Where the wall clock was moved, those
        of one priority are as good as each other; a claim may take less than it could where
        several jobs want one resource, or some of a limited topic have expired."""
        resources = [self.jobs[label]["res"] for label in due if self.jobs[label]["res"]]
        limited = any(self.room(self.jobs[label]["topic"]) < 10 for label in due)
        is_plain = len(set(resources)) == len(resources) and (due == fit or not limited)
        return self.clocks_agree and is_plain

    def as_good(self, fit: list[str], taken: list[str], limit: int, some_died: bool) -> list[str]:
        """What the log says was leased, where that is as good as ``taken``."""
        mine = [label for label in self.observed("job.leased") if label in fit]
        urgency = [self.jobs[label]["priority"] for label in mine]
        is_good = self.alone(self.together(mine)) == mine and len(mine) <= limit
        is_urgent = urgency[:1] == [self.jobs[label]["priority"] for label in taken[:1]]
        is_sorted = urgency == sorted(urgency, reverse=True)
        return mine if is_good and is_sorted and (is_urgent or some_died) else taken

    def take(self, worker: str, lease: int, over: list[str], taken: list[str]) -> list[str]:
        for label in over:
            self.die(label, "Expired")
        for label in taken:
            job = self.jobs[label]
            job |= {"status": "leased", "token": job["token"] + 1, "holder": worker}
            job["lease"] = self.now + lease * SECOND
            self.take_token(job["topic"])
            self.tell("job.leased", label)
            if job["res"]:
                self.tell("lock.acquired", label)
        return taken
