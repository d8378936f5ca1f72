"""Order: which job of an ordering key, and which of a resource, stands to be claimed; pure.

Jobs of one ordering key of a topic form a *line*: all that are pending, leased, or dead while
their topic holds. The first of a line is at its front once nobody else of the line is leased; the
others wait for it. Of the jobs of one resource, over all topics, at most one is leased: it has the
lock. While nobody has it, the first of each topic stands to be claimed, one that is ready, one
that is delayed and one that is dated; the others wait for it.

So whoever looks for the next job never meets one that may not be claimed, however many wait.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import NamedTuple

from tallybook.clock import Moment, boot_mark, from_text
from tallybook.event import Event
from tallybook.job import AT_FRONT, IN_LINE, WAITS_FOR_LINE, WAITS_FOR_RESOURCE, Job, Status

Line = tuple[str, str]


class Lock(NamedTuple):
    """A resource that a leased job has. It belongs to the lease: it is free when the lease is."""

    resource: str
    topic: str
    job_id: str
    worker: str
    lease_token: int
    acquired_at: str
    acquired_boot: str
    acquired_boot_us: int

    def held_ms(self, moment: Moment) -> float:
        """For how long it is held: by boot time within one boot, by wall time over a reboot."""
        if self.acquired_boot == boot_mark(moment.boot_id):
            return (moment.boot_us - self.acquired_boot_us) / 1000
        return max((moment.now - from_text(self.acquired_at)).total_seconds() * 1000, 0.0)


def lock_of(job: Job, leased: Event) -> Lock:
    """The lock that ``job`` has by its event ``job.leased``."""
    return Lock(
        job.resource or "",
        job.topic,
        job.job_id,
        leased["worker"],
        leased["lease_token"],
        leased.occurred_at,
        boot_mark(leased.boot_id),
        leased.boot_us,
    )


def upgraded_lock(job: Job, boot_id: str) -> Lock:
    """The lock of a leased job as a state has it that knew of no locks: since its last extension,
    for longer it cannot say."""
    began_us = (job.lease_boot_us or 0) - (job.lease_ms or 0) * 1000
    boot = boot_mark(boot_id) if job.lease_boot_us else ""
    held = (job.locked_by or "", job.lease_token, job.updated_at, boot, max(began_us, 0))
    return Lock(job.resource or "", job.topic, job.job_id, *held)


def of_line(fronts: Iterable[Job], first: Job | None) -> list[Job]:
    """The jobs of a line that change their place: ``fronts`` were at the front so far, ``first``
    came first of all that are in the line."""
    fronts = list(fronts)
    is_busy = any(job.status == Status.LEASED for job in fronts)
    stands = None if is_busy or first is None or first.status != Status.PENDING else first
    moved = [
        job._replace(line=IN_LINE, waits_for=WAITS_FOR_LINE)
        for job in fronts
        if job.status == Status.PENDING and (stands is None or job.job_id != stands.job_id)
    ]
    if stands and stands.line != AT_FRONT:
        waits_for = WAITS_FOR_RESOURCE if stands.resource else None
        moved.append(stands._replace(line=AT_FRONT, waits_for=waits_for))
    return moved


def of_resource(is_locked: bool, standing: Iterable[Job], waiting: Iterable[Job]) -> list[Job]:
    """The jobs of a resource that change their place: ``standing`` could be claimed so far, of
    ``waiting`` those are given that come first of their topic and kind, or more."""
    standing = list(standing)
    firsts: dict[_Kind, Job] = {}
    for job in () if is_locked else (*standing, *waiting):
        kind = _kind(job)
        if kind not in firsts or _place(job) < _place(firsts[kind]):
            firsts[kind] = job
    stand = {job.job_id for job in firsts.values()}
    back = [
        job._replace(waits_for=WAITS_FOR_RESOURCE) for job in standing if job.job_id not in stand
    ]
    return back + [job._replace(waits_for=None) for job in firsts.values() if job.waits_for]


def moves_line(job: Job) -> bool:
    """Whether a job that has changed its status may move others of its line: one that is leased
    was at the front, and is."""
    return bool(job.ordering_key) and job.status != Status.LEASED


def is_standing(job: Job) -> bool:
    """Whether a job with a resource may be claimed once it is due."""
    return job.status == Status.PENDING and job.waits_for is None


_Kind = tuple[str, bool, bool]
_Place = tuple[int, str, int, int]


def _kind(job: Job) -> _Kind:
    return job.topic, job.due_boot_us > 0, job.due_at > ""


def _place(job: Job) -> _Place:
    return job.due_boot_us, job.due_at, -job.priority, job.ordinal


class Places:
    """Who stands where among ``jobs`` in memory: what SQLite has indexes for.

    A heap keeps the entry of a job that has moved on until that comes up.
    """

    def __init__(self, jobs: Mapping[str, Job]) -> None:
        self._jobs = jobs
        self._fronts: dict[Line, set[str]] = defaultdict(set)
        self._lines: dict[Line, list[tuple[int, str]]] = defaultdict(list)
        self._standing: dict[str, set[str]] = defaultdict(set)
        self._waiting: dict[str, dict[_Kind, list[tuple[_Place, str]]]] = {}
        for job in jobs.values():
            self.put(job)

    def put(self, job: Job) -> None:
        """A job is here, or has changed."""
        if job.ordering_key:
            line = (job.topic, job.ordering_key)
            _keep(self._fronts[line], job.job_id, job.line == AT_FRONT)
            if job.line:
                heappush(self._lines[line], (job.ordinal, job.job_id))
        if job.resource:
            _keep(self._standing[job.resource], job.job_id, is_standing(job))
            if job.waits_for == WAITS_FOR_RESOURCE:
                kinds = self._waiting.setdefault(job.resource, defaultdict(list))
                heappush(kinds[_kind(job)], (_place(job), job.job_id))

    def moved_in_line(self, line: Line) -> list[Job]:
        """The jobs that change their place in a line."""
        fronts = (self._jobs.get(job_id) for job_id in self._fronts[line])
        return of_line(filter(None, fronts), self._first_in(self._lines[line]))

    def moved_of_resource(self, resource: str, is_locked: bool) -> list[Job]:
        """The jobs that change their place before a resource."""
        standing = (self._jobs.get(job_id) for job_id in self._standing[resource])
        kinds = self._waiting.get(resource, {})
        waiting = (self._first_waiting(heap) for heap in kinds.values())
        return of_resource(is_locked, filter(None, standing), filter(None, waiting))

    def _first_in(self, heap: list[tuple[int, str]]) -> Job | None:
        while heap:
            job = self._jobs.get(heap[0][1])
            if job and job.line:
                return job
            heappop(heap)
        return None

    def _first_waiting(self, heap: list[tuple[_Place, str]]) -> Job | None:
        while heap:
            place, job_id = heap[0]
            job = self._jobs.get(job_id)
            if job and job.waits_for == WAITS_FOR_RESOURCE and _place(job) == place:
                return job
            heappop(heap)
        return None


def _keep(ids: set[str], job_id: str, is_in: bool) -> None:
    (ids.add if is_in else ids.discard)(job_id)
