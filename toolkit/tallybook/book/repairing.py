"""What follows from the steps of a repair plan: pure functions of the state.

A step is done only where its entry and its job are still as the plan found them; the event
``plan.applied`` names those that were, in the same change as what they did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallybook.book import changes
from tallybook.book.asking import New
from tallybook.book.caching import Write, Writing
from tallybook.book.store import Store
from tallybook.clock import Moment
from tallybook.event import Event, record
from tallybook.ids import payload_digest
from tallybook.job import Job, Status
from tallybook.settings import Settings
from tallybook.steering import cancel

APPLIED, UNDONE = "applied", "undone"


@record
class Step:
    """One step of a plan. ``entry_key`` has ``version`` (0: it is not there) and a value of
    ``digest``, and ``job_id`` has ``job_status`` and ``lease_token``: else it is passed over.

    ``written_by`` is the job that the writes name. ``rule`` is what becomes of the job: requeue,
    cancel or bury (dead again, as ``death`` says). ``new`` has an idempotency key of its own; a job
    that has it is not enqueued again.
    """

    number: int
    entry_key: str | None = None
    version: int = 0
    digest: str = ""
    writes: tuple[Write, ...] = ()
    written_by: str | None = None
    job_id: str = ""
    job_status: str = ""
    lease_token: int = 0
    rule: str = ""
    death: tuple[tuple[str, Any], ...] = ()
    new: New | None = None


def repaired(
    store: Store, moment: Moment, plan: str, steps: Sequence[Step], settings: Settings, reason: str
) -> list[Event]:
    """The events of those steps that still fit, and which they were; none where none fits."""
    jobs = {job.job_id: job for job in store.queue.get_many([s.job_id for s in steps if s.job_id])}
    store.know(list(jobs.values()))
    told = f"plan {plan} {reason}"
    fitting = [step for step in steps if _fits(store, step, jobs.get(step.job_id))]
    fitting, requeued = _requeued(store, _with_free_keys(store, fitting), told)
    if not fitting:
        return []
    writing = Writing(store.cache)
    events = [
        event for step in fitting for event in writing.events(step.writes, step.written_by)
    ] + requeued
    for step in fitting:
        if step.rule in ("cancel", "bury"):
            events += _ended(jobs[step.job_id], step, settings, told)
    new = [step.new.checked(settings) for step in fitting if step.new]
    events += changes.enqueue(store, moment, new, settings, events) if new else []
    numbers = [step.number for step in fitting]
    return [*events, Event("plan.applied", {"plan": plan, "reason": reason, "steps": numbers})]


def _fits(store: Store, step: Step, job: Job | None) -> bool:
    if step.entry_key is not None:
        entry = store.cache.get(step.entry_key)
        found = (entry.version, payload_digest(entry.value)) if entry else (0, "")
        if found != (step.version, step.digest):
            return False
    if not step.job_id:
        return True
    return job is not None and (job.status, job.lease_token) == (step.job_status, step.lease_token)


def _with_free_keys(store: Store, steps: Sequence[Step]) -> list[Step]:
    """Those whose new job is not there already."""
    keyed = [(step.new.topic, step.new.idempotency_key or "") for step in steps if step.new]
    there = store.queue.by_keys(keyed) if keyed else {}
    return [
        step
        for step in steps
        if not step.new or (step.new.topic, step.new.idempotency_key or "") not in there
    ]


def _requeued(store: Store, steps: Sequence[Step], told: str) -> tuple[list[Step], list[Event]]:
    """The steps but for those whose job cannot be requeued, and the events of those that can."""
    asked = [step.job_id for step in steps if step.rule == "requeue"]
    events = changes.steer(store, "requeue", asked, told) if asked else []
    made = {event["job_id"] for event in events}
    return [s for s in steps if s.rule != "requeue" or s.job_id in made], events


def _ended(job: Job, step: Step, settings: Settings, told: str) -> list[Event]:
    """A pending job is taken back: cancelled, or dead as it was before."""
    if step.rule == "cancel" or job.status != Status.PENDING:
        return cancel(job, told)
    skips = job.ordering_key and settings.topic(job.topic).ordering == "skip"
    ordering = {"ordering": "skip"} if skips else {}
    return [Event("job.dead", job.named() | dict(step.death) | ordering)]
