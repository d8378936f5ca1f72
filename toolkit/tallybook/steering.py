"""What a person or a limit of time asks of a job: the rules; pure.

Each rule gives the events that follow, none where the job is not in a state for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tallybook.event import Event
from tallybook.job import Job, Status

Rule = Callable[[Job, str], list[Event]]


def requeue(job: Job, reason: str) -> list[Event]:
    """A dead or cancelled job is pending again, with all its attempts before it."""
    if job.status not in (Status.DEAD, Status.CANCELLED):
        return []
    return [Event("job.requeued", job.named() | {"reason": reason})]


def discard(job: Job, reason: str) -> list[Event]:
    """A dead letter is given up: the job is cancelled."""
    if job.status != Status.DEAD:
        return []
    return [Event("job.discarded", job.named() | {"reason": reason})]


def cancel(job: Job, reason: str) -> list[Event]:
    """A pending job is cancelled at once. Of a leased one that is asked for, once: its run is
    told, and the job is cancelled when the lease ends and the run has not made it done or dead."""
    if job.status == Status.PENDING:
        return [Event("job.cancelled", job.named() | {"reason": reason})]
    if job.status != Status.LEASED or job.cancel_requested_at:
        return []
    return [Event("job.cancel_requested", job.named() | {"reason": reason})]


RULES: Mapping[str, Rule] = {"requeue": requeue, "discard": discard, "cancel": cancel}
FITTING: Mapping[str, tuple[str, ...]] = {
    "requeue": (Status.DEAD.value, Status.CANCELLED.value),
    "discard": (Status.DEAD.value,),
    "cancel": (Status.PENDING.value, Status.LEASED.value),
}
