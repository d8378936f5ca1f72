"""Jobs taken from workers that went silent or died: few come back at once, many spread out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tallybook.book.store import Store
from tallybook.clock import Moment
from tallybook.event import Event
from tallybook.job import Job
from tallybook.outcome import Outcome
from tallybook.settings import Settings

_AT_ONCE = 32
_SPREAD_S = 0.02
_LONGEST_SPREAD_S = 30.0


def rescue(
    jobs: list[Job],
    moment: Moment,
    settings: Settings,
    dice: Callable[[], float],
    reason: str = "expired",
) -> list[Event]:
    """The events of jobs taken from their holders.

    The first 32 are due at once, as many as a thread claims; what else is rescued in the same
    change is due within 20 ms a job, at a random instant, 30 s at most.
    """
    spread_s = min(len(jobs) * _SPREAD_S, _LONGEST_SPREAD_S)
    events: list[Event] = []
    for place, job in enumerate(jobs):
        wait = _wait(moment, spread_s * dice()) if place >= _AT_ONCE else None
        events += job.rescue(settings.topic(job.topic), reason, wait)
    return events


def _wait(moment: Moment, delay_s: float) -> dict[str, Any]:
    delay_ms = max(round(delay_s * 1000), 1)
    return {"delay_ms": delay_ms, "next_attempt_at": moment.wall(delay_ms)}


def bury(
    store: Store,
    moment: Moment,
    worker: str,
    settings: Settings,
    dice: Callable[[], float],
    stopped: Mapping[str, Mapping[str, Any]],
) -> list[Event]:
    """The events of a worker that is dead: its end, and its jobs taken from it.

    One that ended itself to stop runs has logged its end. It ``stopped`` those by job id, and
    nothing is counted of its other jobs.
    """
    held = store.know(store.queue.held_by(worker))
    if stopped:
        return [
            event
            for job in held
            for event in _after_stop(job, stopped.get(job.job_id), moment, settings, dice())
        ]
    died = Event("worker.stopped", {"worker": worker, "reason": "died"})
    return [died, *rescue(held, moment, settings, dice, "worker_dead")]


def _after_stop(
    job: Job, run: Mapping[str, Any] | None, moment: Moment, settings: Settings, dice: float
) -> list[Event]:
    """The events of one job of a worker that ended itself: a run that it stopped for its timeout
    is a failed attempt, any other job goes back uncounted."""
    if not run or run["why"] != "timed_out":
        return [job.release("its worker ended to stop another run" if not run else "cancelled")]
    outcome = Outcome(
        job_id=job.job_id,
        topic=job.topic,
        worker=job.locked_by or "",
        lease_token=job.lease_token,
        settle="retry",
        started_at=run["started_at"],
        duration_ms=run["duration_ms"],
        correlation_id=job.correlation_id,
        error_type="TimedOut",
        error=job.timed_out_words,
    )
    return job.ended(outcome, settings.topic(job.topic), dice, moment)
