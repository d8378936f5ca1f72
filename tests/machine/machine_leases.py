"""How leases end, in the plain model: settled, handed back, or taken from whoever went silent."""

from __future__ import annotations

from collections.abc import Iterable

from machine_model import Model
from machine_order import SECOND, Row


class LeaseModel(Model):
    """All that ends a lease."""

    def is_leased(self, label: str, token: int) -> bool:
        job = self.jobs.get(label)
        return job is not None and (job["status"], job["token"]) == ("leased", token)

    def has_lease(self, label: str, token: int) -> bool:
        return self.is_leased(label, token) and not self.is_late(self.jobs[label])

    def lets_through(self, settles: Iterable[Row]) -> bool:
        """Whether jobs may be claimed after these settles that may not before; what a settle
        leaves pending is claimed by a later turn, else."""
        jobs = [self.jobs[one["label"]] for one in settles if one["label"] in self.jobs]
        is_limited = any(rules["running"] or rules["rate"] for rules in self.rules.values())
        return is_limited or any(job["order"] or job["res"] for job in jobs)

    def settle(self, settles: list[Row]) -> set[str]:
        """End leases; the labels of those that are refused, as they are over."""
        first: set[str] = set()
        refused = set()
        for one in settles:
            label, token = one["label"], one["token"]
            if label not in first and self.has_lease(label, token):
                self.end(label, **one["how"])
            else:
                refused.add(label)
                if label not in first and self.is_leased(label, token):
                    self.rescue_one(label)
                self.tell("job.settle_refused", label)
            first.add(label)
        return refused

    def end(
        self,
        label: str,
        kind: str,
        after: float | None = None,
        until: int | None = None,
        counted: bool = True,
        puts: Iterable[Row] = (),
    ) -> None:
        job, rules = self.jobs[label], self.rules[self.jobs[label]["topic"]]
        if kind == "done":
            for put in puts:
                self.put(**put, job=label)
            job |= {"attempts": job["attempts"] + 1, "result": "fine"}
            return self.finish(label, "done", "job.done")
        if job["cancel"] and kind != "dead":
            job["error"] = "E" if kind == "retry" else job["error"]
            return self.finish(label, "cancelled", "job.cancelled")
        if kind == "snooze":
            return self.free(label, "job.snoozed", None if until is not None else after or 0, until)
        spent = counted and job["attempts"] + 1 >= rules["attempts"]
        job |= {"attempts": job["attempts"] + counted, "error": "E"}
        if kind == "dead" or spent or self.is_over(job):
            return self.finish(label, "dead", "job.dead")
        doubled = rules["first"] * 2 ** (max(job["attempts"], 1) - 1)
        return self.free(label, "job.retry_scheduled", max(min(doubled, rules["cap"]), after or 0))

    def free(
        self, label: str, event: str, delay: float | None = None, until: int | None = None
    ) -> None:
        lock = self.let_go(label, "pending")
        self.wait(self.jobs[label], delay, until)
        self.tell(event, label)
        self.tell_lock(lock, label)

    def finish(self, label: str, status: str, event: str) -> None:
        lock = self.let_go(label, status)
        job = self.jobs[label]
        job["ended"] = (self.boot, self.now, self.wall)
        job["holds"] = status == "dead" and self.rules[job["topic"]]["ordering"] == "hold"
        self.tell(event, label)
        self.tell_lock(lock, label)

    def let_go(self, label: str, status: str) -> bool:
        """A job takes a status that is no lease; whether it had a lock."""
        job = self.jobs[label]
        had = bool(job["res"]) and job["status"] == "leased"
        job |= {"status": status, "holder": None, "lease": None, "cancel": False, "holds": False}
        return had

    def tell_lock(self, had: bool, label: str) -> None:
        if had:
            self.tell("lock.released", label)

    def die(self, label: str, error: str) -> None:
        self.jobs[label]["error"] = error
        self.finish(label, "dead", "job.dead")

    def extend(self, leases: list[tuple[str, int]], lease: int) -> list[str]:
        lost = []
        for label, token in leases:
            if self.has_lease(label, token):
                self.jobs[label]["lease"] = self.now + lease * SECOND
                self.tell("job.extended", label)
            else:
                lost.append(label)
                self.tell("job.settle_refused", label)
        return lost

    def release(self, leases: list[tuple[str, int]]) -> None:
        held = {label for label, token in leases if self.has_lease(label, token)}
        for label in self.as_observed(held):
            self.hand_back(label)

    def release_by_hand(self, label: str, token: int) -> bool:
        if not self.is_leased(label, token):
            return False
        self.hand_back(label)
        return True

    def hand_back(self, label: str) -> None:
        if self.jobs[label]["cancel"]:
            self.finish(label, "cancelled", "job.cancelled")
        else:
            self.free(label, "job.released")

    def rescue(self) -> None:
        late = [
            n for n, job in self.jobs.items() if job["status"] == "leased" and self.is_late(job)
        ]
        for label in self.as_observed(late):
            self.rescue_one(label)

    def rescue_of(self, worker: str) -> None:
        """A worker died: all that it holds is taken from it at once."""
        self.tell("worker.stopped", worker)
        held = [n for n, job in self.jobs.items() if job["holder"] == worker]
        for label in self.as_observed(held):
            self.rescue_one(label)

    def rescue_one(self, label: str) -> None:
        job = self.jobs[label]
        if job["cancel"]:
            return self.finish(label, "cancelled", "job.cancelled")
        job["rescues"] += 1
        self.free(label, "job.lease_expired")
        if job["rescues"] > self.rules[job["topic"]]["rescues"]:
            self.die(label, "KilledWorkers")
        return None
