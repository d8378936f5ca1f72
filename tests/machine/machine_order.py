"""Who may be claimed, in the plain model: ordering keys, resources, limits; looked up each time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]
SECOND = 1_000_000
FINAL = ("done", "dead", "cancelled")
NO_BOUND = 10**9
RULES: dict[str, Row] = {
    "a": {"attempts": 3, "rescues": 1, "first": 2, "cap": 6, "window": 100, "done": 150, "dead": 0},
    "b": {"attempts": 2, "rescues": 0, "first": 1, "cap": 1, "window": 0, "done": 40, "dead": 60},
    "c": {"attempts": 2, "rescues": 2, "first": 4, "cap": 9, "window": 30, "done": 30, "dead": 30},
}
LIMITS: Row = {"ordering": "hold", "running": 0, "rate": 0, "burst": 0, "pending": 0}
RULES["a"] |= LIMITS
RULES["b"] |= LIMITS | {"ordering": "skip"}
RULES["c"] |= LIMITS
LIMITED = RULES | {"c": RULES["c"] | {"running": 1, "rate": 0.1, "burst": 2, "pending": 4}}
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
ordering = "{ordering}"
max_running = {running}
rate_per_s = {rate}
rate_burst = {burst}
max_pending = {pending}
"""


class OrderModel:
    """Jobs by label in order of age; when the bucket of each topic is full again."""

    def __init__(self) -> None:
        self.rules = RULES
        self.jobs: dict[str, Row] = {}
        self.buckets: dict[str, int] = {}
        self.now = 0

    def line(self, job: Row) -> list[Row]:
        """The jobs of its ordering key that are open, or dead and hold up the others."""
        return [
            other
            for other in self.jobs.values()
            if (other["topic"], other["order"]) == (job["topic"], job["order"])
            and (other["status"] not in FINAL or other["holds"])
        ]

    def is_first(self, job: Row) -> bool:
        """Whether no other job of its ordering key is before it, or leased."""
        line = self.line(job) if job["order"] else [job]
        return line[0] is job and all(other["status"] != "leased" for other in line)

    def holder_of(self, resource: str) -> str | None:
        """The job that has a resource."""
        leased = [n for n, j in self.jobs.items() if j["status"] == "leased"]
        return next((name for name in leased if self.jobs[name]["res"] == resource), None)

    def waits_for(self, job: Row) -> str | None:
        """What keeps a pending job from being claimed, also once it is due."""
        if not self.is_first(job):
            return "ordering_key"
        if not job["res"]:
            return None
        if self.holder_of(job["res"]):
            return "resource"
        rivals = [
            other
            for other in self.jobs.values()
            if other["status"] == "pending"
            and (other["res"], other["topic"]) == (job["res"], job["topic"])
            and (other["due"] > 0, bool(other["at"])) == (job["due"] > 0, bool(job["at"]))
            and self.is_first(other)
        ]
        first = min(rivals, key=lambda one: (one["due"], one["at"], -one["priority"]))
        return None if first is job else "resource"

    def room(self, topic: str) -> int:
        """How many more jobs of a topic its limits let through now."""
        rules = self.rules[topic]
        jobs = [j for j in self.jobs.values() if (j["topic"], j["status"]) == (topic, "leased")]
        free = rules["running"] - len(jobs) if rules["running"] else NO_BOUND
        return min(free, self.tokens(topic)) if rules["rate"] else free

    def tokens(self, topic: str) -> int:
        """Whole tokens in the bucket of a topic."""
        owed = max(self.buckets.get(topic, 0) - self.now, 0)
        return int(
            (self.rules[topic]["burst"] * self.interval(topic) - owed) // self.interval(topic)
        )

    def interval(self, topic: str) -> int:
        return round(SECOND / self.rules[topic]["rate"])

    def take_token(self, topic: str) -> None:
        if self.rules[topic]["rate"]:
            full = max(self.buckets.get(topic, 0), self.now)
            self.buckets[topic] = full + self.interval(topic)

    def together(self, labels: Iterable[str]) -> list[str]:
        """Those that may be leased in one claim, in their order."""
        rooms = {topic: self.room(topic) for topic in self.rules}
        resources: set[str] = set()
        found = []
        for label in labels:
            topic, resource = self.jobs[label]["topic"], self.jobs[label]["res"]
            if rooms[topic] > 0 and resource not in resources:
                rooms[topic] -= 1
                resources |= {resource} if resource else set()
                found.append(label)
        return found

    def pending_in_line(self, job: Row) -> list[str]:
        """The pending jobs of an ordering key but for ``job``, oldest first."""
        line = [j for j in self.line(job) if j["status"] == "pending" and j is not job]
        return [name for name, other in self.jobs.items() if any(other is j for j in line)]
