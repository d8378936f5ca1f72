"""Who stands to be claimed after a change: ``tallybook.order`` asked of the tables, once for all
ordering keys and resources that the change touched.

Rows that the change adds are not in the tables yet: they are weighed with those that are, so that
each is written once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from tallybook.job import AT_FRONT, WAITS_FOR_LINE, Job, Status
from tallybook.order import Line, Lock, moves_line, of_line, of_resource
from tallybook.queue.ordering import Ordering


class Touched:
    """The lines, resources and locks that a change has touched so far."""

    def __init__(self, ordering: Ordering) -> None:
        self._ordering = ordering
        self._lines: dict[Line, None] = {}
        self._resources: dict[str, None] = {}
        self._locks: dict[str, Lock | None] = {}
        self._known: dict[str, Lock | None] = {}

    def __bool__(self) -> bool:
        return bool(self._lines or self._resources)

    def touch(self, job: Job) -> None:
        """A job has changed its status, or is new."""
        if moves_line(job):
            self._lines[job.topic, job.ordering_key or ""] = None
        if job.resource:
            self._resources[job.resource] = None

    def forget(self) -> None:
        """The change is over, written or rolled back."""
        self._lines.clear()
        self._resources.clear()
        self._locks.clear()
        self._known.clear()

    def know(self, resources: Sequence[str]) -> None:
        """Look once who has ``resources``, since all of them are asked for in this change."""
        if resources:
            self._known |= dict.fromkeys(resources) | self._ordering.locked(resources)

    def lock(self, resource: str) -> Lock | None:
        """Who has a resource."""
        if resource in self._locks:
            return self._locks[resource]
        if resource not in self._known:
            self._known[resource] = self._ordering.lock(resource)
        return self._known[resource]

    def put_lock(self, resource: str, lock: Lock | None) -> None:
        """Keep who has a resource; None: nobody."""
        self._locks[resource] = lock

    def moved_in_lines(self, new: Iterable[Job]) -> list[Job]:
        """The jobs that change their place in a line, ``new`` ones among them."""
        lines, self._lines = self._lines, {}
        if not lines:
            return []
        firsts = self._ordering.firsts(lines)
        fronts = self._ordering.fronts(firsts) if firsts else defaultdict(list)
        for job in sorted((job for job in new if job.line), key=_AGE):
            line = (job.topic, job.ordering_key or "")
            firsts.setdefault(line, job)
            if job.line == AT_FRONT:
                fronts[line].append(job)
        moved = [job for line, first in firsts.items() for job in of_line(fronts[line], first)]
        for job in moved:
            if job.resource:
                self._resources[job.resource] = None
        return moved

    def moved_of_resources(self, new: Iterable[Job]) -> list[Job]:
        """The jobs that change their place before a resource, ``new`` ones among them; the rows
        of lines are written. Of a resource that somebody had when it was last looked at, no job
        stands."""
        resources, self._resources = self._resources, {}
        if not resources:
            return []
        was_locked = dict(self._known)
        self._write_locks()
        locked = self._locked(resources)
        asked = [resource for resource in resources if not was_locked.get(resource)]
        standing = _by_resource(self._ordering.standing(asked) if asked else ())
        free = [resource for resource in resources if not locked[resource]]
        waiting = _by_resource(self._ordering.waiting(free) if free else ())
        for job in new:
            if job.resource and job.status == Status.PENDING and job.waits_for != WAITS_FOR_LINE:
                waiting[job.resource].append(job)
        return [
            job
            for name in resources
            for job in of_resource(bool(locked[name]), standing[name], waiting[name])
        ]

    def _locked(self, resources: Iterable[str]) -> Mapping[str, Lock | None]:
        unknown = [resource for resource in resources if resource not in self._known]
        self.know(unknown)
        return self._known

    def _write_locks(self) -> None:
        locks, self._locks = self._locks, {}
        self._known |= locks
        gone = [resource for resource, lock in locks.items() if lock is None]
        if gone:
            self._ordering.drop_locks(gone)
        if len(gone) < len(locks):
            self._ordering.put_locks(lock for lock in locks.values() if lock)


_AGE = attrgetter("ordinal")


def _by_resource(jobs: Iterable[Job]) -> dict[str, list[Job]]:
    found: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        found[job.resource or ""].append(job)
    return found
