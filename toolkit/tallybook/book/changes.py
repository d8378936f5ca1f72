"""What a change of a book decides: pure functions of the state, the moment and what was asked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tallybook.book.store import Store
from tallybook.clock import Moment, to_text
from tallybook.errors import BadInput, KeyConflict
from tallybook.event import Event
from tallybook.ids import new_job_id


@dataclass(frozen=True, slots=True)
class Held:
    """A lease that a worker holds; ``started_at`` once its handler runs."""

    job_id: str
    lease_token: int
    started_at: str | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """The job is on disk. ``is_new`` is False where it was already there under the same key."""

    job_id: str
    is_new: bool


def checked_priority(priority: int) -> int:
    """A priority from -1000 to 1000. Raises BadInput."""
    if not -1000 <= priority <= 1000:
        raise BadInput(f"priority {priority}: use a whole number from -1000 to 1000")
    return priority


def due(delay_s: float | None, next_attempt_at: datetime | None) -> dict[str, Any]:
    """The fields of an event that say when a job is due; empty for now. Raises BadInput."""
    if delay_s is not None and next_attempt_at is not None:
        raise BadInput("give a delay or a time, not both")
    if delay_s is not None:
        if not 0 <= delay_s <= 366 * 86400:
            raise BadInput(f"delay {delay_s:g} s: use 0 to 366 days")
        return {"delay_ms": round(delay_s * 1000) or None}
    if next_attempt_at is not None:
        if next_attempt_at.tzinfo is None:
            raise BadInput(f"{next_attempt_at}: give a time with its zone")
        return {"next_attempt_at": to_text(next_attempt_at)}
    return {}


def enqueued(store: Store, moment: Moment, fields: dict[str, Any], due: dict[str, Any]) -> Event:
    """The event of an enqueue: a new job, or the first one with this key. Raises KeyConflict."""
    key = fields["idempotency_key"]
    first = store.queue.by_key(fields["topic"], key) if key else None
    if first is None:
        job_id = new_job_id()
        made = {"job_id": job_id} | fields | {"idempotency_key": key or job_id} | due
        if due.get("delay_ms"):
            made["next_attempt_at"] = moment.wall(due["delay_ms"])
        return Event("job.enqueued", made)
    if first.payload_digest != fields["payload_digest"]:
        raise KeyConflict(
            f"idempotency key {key!r} of topic {first.topic} belongs to job {first.job_id}, "
            "which has another payload; use another key"
        )
    again = ("topic", "correlation_id", "idempotency_key", "payload_digest", "enqueued_from")
    return Event("job.deduplicated", {"job_id": first.job_id} | {n: fields[n] for n in again})


def extended(
    store: Store, moment: Moment, held: Held, worker: str, lease_s: float, lost: list[Held]
) -> Event:
    """The event of an extension; a lost lease is refused and added to ``lost``."""
    job = store.job(held.job_id)
    ended = job.lease_ended(held.lease_token, moment) if job else "the job was pruned"
    if job and not ended:
        return job.extend(round(lease_s * 1000), held.started_at, moment)
    lost.append(held)
    named = job.named() if job else {"job_id": held.job_id}
    late = {"worker": worker, "lease_token": held.lease_token, "settle": "extend"}
    return Event("job.settle_refused", named | late | {"reason": ended})
