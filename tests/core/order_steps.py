"""Who may be claimed, by plain sorting and grouping of all jobs: the tables must agree with it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from tallybook import Book
from tallybook.job import Job, Status


def places(jobs: Iterable[Job]) -> dict[str, tuple[int, str | None]]:
    """{job id: (line, waits_for)} as docs/concepts.md tells it."""
    found: dict[str, tuple[int, str | None]] = {}
    of_resource: dict[str, list[Job]] = defaultdict(list)
    taken = {job.resource for job in jobs if job.status == Status.LEASED}
    for members in _lines(jobs).values():
        open_members = [job for job in members if job.line]
        is_busy = any(job.status == Status.LEASED for job in open_members)
        for place, job in enumerate(open_members):
            first = place == 0 and not is_busy and job.status == Status.PENDING
            at_front = first or job.status == Status.LEASED
            waits = job.status == Status.PENDING and not first
            found[job.job_id] = (2 if at_front else 1, "ordering_key" if waits else None)
    for job in jobs:
        found.setdefault(job.job_id, (0, None))
        if job.resource and job.status == Status.PENDING and not found[job.job_id][1]:
            of_resource[job.resource].append(job)
    for resource, members in of_resource.items():
        standing = set() if resource in taken else _standing(members)
        for job in members:
            waits_for = None if job.job_id in standing else "resource"
            found[job.job_id] = (found[job.job_id][0], waits_for)
    return found


def _lines(jobs: Iterable[Job]) -> dict[tuple[str, str], list[Job]]:
    lines: dict[tuple[str, str], list[Job]] = defaultdict(list)
    for job in sorted(jobs, key=lambda job: job.ordinal):
        if job.ordering_key:
            lines[job.topic, job.ordering_key].append(job)
    return lines


def _standing(members: list[Job]) -> set[str]:
    """The first of each topic that is ready, that is delayed and that is dated."""
    firsts: dict[Any, Job] = {}
    for job in sorted(
        members, key=lambda j: (j.due_boot_us, j.due_at, -j.priority, j.ordinal), reverse=True
    ):
        firsts[job.topic, job.due_boot_us > 0, job.due_at > ""] = job
    return {job.job_id for job in firsts.values()}


def require_order(book: Book) -> None:
    """Every job stands where it must, and of a line or a resource one at most is leased."""
    jobs = book.jobs(limit=10**6)
    assert {job.job_id: (job.line, job.waits_for) for job in jobs} == places(jobs)
    leased = [job for job in jobs if job.status == Status.LEASED]
    for held in (
        [job.resource for job in leased if job.resource],
        [(job.topic, job.ordering_key) for job in leased if job.ordering_key],
    ):
        assert len(held) == len(set(held))
    locks = {held.lock.resource: held.lock.job_id for held in book.locks(10**6)}
    assert locks == {job.resource: job.job_id for job in leased if job.resource}
