"""What a book is to do, as plainly as it can be said: dictionaries, and no rule of tallybook's own.

Written from docs/concepts.md, so that ``test_machine`` can hold a book to it.
A job is named by its label. Times are whole µs; ``wall`` counts from the start of the fake clock.
Each verb changes the state and ``tell`` s its events one by one, with the state after each.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

SECOND = 1_000_000
RULES = {
    "a": {"attempts": 3, "rescues": 1, "first": 2, "cap": 6, "window": 100, "done": 150, "dead": 0},
    "b": {"attempts": 2, "rescues": 0, "first": 1, "cap": 1, "window": 0, "done": 40, "dead": 60},
}
TOML = """
[topics.{0}]
max_attempts = {attempts}
max_rescues = {rescues}
backoff_first_s = {first}
backoff_cap_s = {cap}
jitter = 0
dedupe_window_s = {window}
keep_done_s = {done}
keep_dead_s = {dead}
"""
FINAL = ("done", "dead", "cancelled")
Row = dict[str, Any]


class KeyTaken(Exception):
    """An idempotency key belongs to a job with another payload."""


class Model:
    """Jobs by label in order of age, cache entries by key, topics that are paused."""

    def __init__(self) -> None:
        self.jobs: dict[str, Row] = {}
        self.entries: dict[str, Row] = {}
        self.paused: set[str] = set()
        self.boot = ""
        self.wall = self.now = 0
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
        copied.entries = dict(self.entries)
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
        """Leases are over; what is left of waits is taken from wall time."""
        for job in self.jobs.values():
            if job["status"] in FINAL:
                continue
            if job["expires"]:
                left = self.left(job["expires_wall"], job["expires_after"])
                job["expires"] = max(self.now + left, 1)
            if job["status"] == "leased":
                job["lease"] = None
            elif job["due"]:
                job["due"] = self.now + self.left(job["shown"], job["delay"])

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

    def enqueue(self, new: list[Row]) -> list[tuple[str, bool]]:
        """All of them or none; the label of each job, and whether it is new."""
        return [self.enqueue_one(**one) for one in new]

    def enqueue_one(self, label: str, topic: str, payload: Any, **more: Any) -> tuple[str, bool]:
        first = self.holder(topic, more.get("key"))
        if first:
            if self.jobs[first]["payload"] != payload:
                raise KeyTaken
            self.tell("job.deduplicated", first)
            return first, False
        job = {
            "topic": topic, "payload": payload, "key": more.get("key"), "status": "pending",
            "priority": more.get("priority", 0), "attempts": 0, "rescues": 0, "token": 0,
            "holder": None, "lease": None, "cancel": False, "error": None, "result": None,
            "created": self.wall, "expires_after": (more.get("expires") or 0) * SECOND,
        }  # fmt: skip
        self.jobs[label] = job
        self.expiry(job)
        self.wait(job, more.get("delay") or None, more.get("at"))
        self.tell("job.enqueued", label)
        return label, True

    def holder(self, topic: str, key: str | None) -> str | None:
        """The job that has the key: the open one, else the newest, for the window."""
        named = [
            n for n, job in self.jobs.items() if key and (job["topic"], job["key"]) == (topic, key)
        ]
        still = [name for name in named if self.jobs[name]["status"] not in FINAL]
        if still:
            return still[-1]
        return named[-1] if named and self.holds_key(self.jobs[named[-1]]) else None

    def holds_key(self, job: Row) -> bool:
        window = RULES[job["topic"]]["window"] * SECOND
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
        taken = self.claimed_of(fit, limit)
        ahead = due[: due.index(taken[-1])] if len(taken) == limit else due
        must = set(ahead if self.clocks_agree else ()) - set(fit)
        over = must | (set(self.observed("job.dead")) & set(due) - set(fit))
        rescued = [place for place, label in enumerate(taken) if self.jobs[label]["rescues"]]
        return self.as_observed(over), taken[: max(rescued[0], 1)] if rescued else taken

    def take(self, worker: str, lease: int, over: list[str], taken: list[str]) -> list[str]:
        for label in over:
            self.die(label, "Expired")
        for label in taken:
            job = self.jobs[label]
            job |= {"status": "leased", "token": job["token"] + 1, "holder": worker}
            job["lease"] = self.now + lease * SECOND
            self.tell("job.leased", label)
        return taken

    def claimed_of(self, fit: list[str], limit: int) -> list[str]:
        """The first ones; where the wall clock was moved, those of first priority are as good."""
        taken = fit[:limit]
        if self.clocks_agree:
            return taken
        shown = [label for label in self.observed("job.leased") if label in fit]
        others = [label for label in taken if label not in shown]
        mine = sorted([*shown, *others], key=lambda n: -self.jobs[n]["priority"])[:limit]
        same = [self.jobs[n]["priority"] for n in mine] == [self.jobs[n]["priority"] for n in taken]
        return mine if same else taken
