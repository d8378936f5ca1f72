"""The places that a job takes by itself when an event changes it: in the line of its ordering key,
and before its resource. Who is next of them is the business of ``tallybook.order``; pure."""

from __future__ import annotations

from tallybook.event import Event
from tallybook.job import (
    AT_FRONT,
    IN_LINE,
    NOT_IN_LINE,
    WAITS_FOR_LINE,
    WAITS_FOR_RESOURCE,
    Job,
    Status,
)


def taken(before: Job, job: Job, event: Event) -> Job:
    """A job with the place that it takes by itself when its status changes; who is before it is
    the business of ``tallybook.order``.

    A job that goes back from a lease stays at the front of its line; one that is requeued takes
    the place of its age. A dead one stays in line unless its topic skips the dead.
    """
    if job.status == Status.PENDING:
        if before.status == Status.LEASED:
            return job._replace(waits_for=waits_for(None, job.resource))
        return _by_age(job)
    if job.status == Status.LEASED:
        return job._replace(line=AT_FRONT if job.ordering_key else NOT_IN_LINE, waits_for=None)
    holds = job.status == Status.DEAD and job.ordering_key and event.get("ordering") != "skip"
    return job._replace(line=IN_LINE if holds else NOT_IN_LINE, waits_for=None)


def given(job: Job) -> Job:
    """A job of a state that knew of no places, with the one that it takes by itself."""
    if job.status == Status.PENDING:
        return _by_age(job)
    holds = job.ordering_key and job.status in (Status.LEASED, Status.DEAD)
    at_front = AT_FRONT if job.status == Status.LEASED else IN_LINE
    return job._replace(line=at_front if holds else NOT_IN_LINE)


def _by_age(job: Job) -> Job:
    line = IN_LINE if job.ordering_key else NOT_IN_LINE
    return job._replace(line=line, waits_for=waits_for(job.ordering_key, job.resource))


def waits_for(ordering_key: str | None, resource: str | None) -> str | None:
    """What a pending job with these waits for."""
    if ordering_key:
        return WAITS_FOR_LINE
    return WAITS_FOR_RESOURCE if resource else None
