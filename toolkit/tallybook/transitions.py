"""What an event leaves of a job: the half of the fold that knows each kind of event; pure.

The other half is in ``tallybook.job``: a rule looks at a job and says which event follows. Live
changes, replay after a crash and a rebuild all go through ``after``, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson

from tallybook import places
from tallybook.clock import boot_mark, from_text, to_text
from tallybook.errors import FoldRefused
from tallybook.event import Event
from tallybook.job import IN_LINE, NOT_IN_LINE, Job, Status
from tallybook.places import waits_for

_Changes = dict[str, Any]
_PENDING, _LEASED, _DONE, _DEAD, _CANCELLED = (status.value for status in Status)


def enqueued(event: Event, ordinal: int) -> Job:
    """The job that ``job.enqueued`` makes; ``ordinal`` is its place in the history."""
    field, get = event.fields, event.fields.get
    delay_ms, next_attempt_at = get("delay_ms"), get("next_attempt_at")
    expires_after_ms = get("expires_after_ms")
    payload_json = _payload_json(event)
    ordering_key, resource = get("ordering_key"), get("resource")
    return Job(
        job_id=field["job_id"],
        topic=field["topic"],
        payload_json=payload_json,
        payload_bytes=_bytes(payload_json),
        payload_digest=event.get("payload_digest", ""),
        idempotency_key=field["idempotency_key"],
        ordinal=ordinal,
        priority=get("priority", 0),
        max_attempts=get("max_attempts", 10),
        next_attempt_at=next_attempt_at,
        delay_ms=delay_ms,
        due_boot_us=event.boot_us + delay_ms * 1000 if delay_ms else 0,
        due_at=next_attempt_at if next_attempt_at and not delay_ms else "",
        correlation_id=get("correlation_id"),
        enqueued_from=get("enqueued_from"),
        resource=resource,
        ordering_key=ordering_key,
        line=IN_LINE if ordering_key else NOT_IN_LINE,
        waits_for=waits_for(ordering_key, resource),
        expires_at=get("expires_at"),
        expires_after_ms=expires_after_ms,
        expire_boot_us=event.boot_us + expires_after_ms * 1000 if expires_after_ms else 0,
        timeout_s=get("timeout_s"),
        created_at=event.occurred_at,
        updated_at=event.occurred_at,
    )


def after(job: Job, event: Event) -> Job | None:
    """The job after ``event``; None once it is pruned. Raises FoldRefused where it cannot be."""
    fold = _FOLDS.get(event.name)
    if fold is None:
        raise FoldRefused(f"seq {event.seq}: event {event.name!r} is not known to this version")
    if job.status not in fold.before:
        raise FoldRefused(f"seq {event.seq}: {event.name} of job {job.job_id}: it is {job.status}")
    _check_token(job, event)
    if event.name == "job.pruned":
        return None
    if fold.change is None:
        return job
    columns = fold.change(job, event)
    columns["updated_at"] = event.occurred_at
    changed = job.changed(columns)
    if (job.ordering_key or job.resource) and changed.status != job.status:
        return places.taken(job, changed, event)
    return changed


def upgraded(job: Job) -> Job:
    """A job as a state has it that knew of no places: with those that it takes by itself."""
    job = job._replace(payload_bytes=_bytes(job.payload_json))
    return places.given(job) if job.ordering_key or job.resource else job


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _check_token(job: Job, event: Event) -> None:
    due = job.lease_token + 1 if event.name == "job.leased" else job.lease_token
    if event.fields.get("lease_token", due) != due:
        raise FoldRefused(
            f"seq {event.seq}: {event.name} of job {job.job_id} names lease "
            f"{event['lease_token']} where lease {due} is due"
        )


def lacks_payload(event: Event) -> bool:
    """Whether this is an enqueue of which the log was not to keep the payload, or not whole."""
    left_out = () if "payload" in event.withheld else event.fields.get("redacted")
    if not left_out or event.name != "job.enqueued":
        return False
    return any(place.startswith("payload") and place != "payload_digest" for place in left_out)


def _payload_json(event: Event) -> str:
    """The payload of an enqueue; no text where it is lost."""
    return "" if lacks_payload(event) else _json(event.get("payload"))


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


# what an event changes, by column: one replacement a fold, for a queue makes many


def _leased(job: Job, event: Event) -> _Changes:
    columns = _held(job, event)
    columns["status"] = _LEASED
    columns["lease_token"] = event.fields["lease_token"]
    return columns


def _held(_: Job, event: Event) -> _Changes:
    field = event.fields
    lease_ms = field["lease_ms"]
    return {
        "locked_by": field["worker"],
        "locked_until": field["locked_until"],
        "lease_ms": lease_ms,
        "lease_boot_us": event.boot_us + lease_ms * 1000,
    }


def _free(job: Job, event: Event, status: str) -> _Changes:
    get = event.fields.get
    columns = _AT_REST.copy()
    columns["status"] = status
    columns["attempt_count"] = get("attempt_count", job.attempt_count)
    columns["rescue_count"] = get("rescue_count", job.rescue_count)
    return columns


def _final(job: Job, event: Event, status: str) -> _Changes:
    columns = _free(job, event, status)
    columns["finished_at"] = event.occurred_at
    columns["finished_boot"] = boot_mark(event.boot_id)
    columns["finished_boot_us"] = event.boot_us
    return columns


def _failed(event: Event) -> _Changes:
    return {"last_error": event.get("error"), "error_type": event.get("error_type")}


def _settled_done(job: Job, event: Event) -> _Changes:
    done, result = _final(job, event, _DONE), event.get("result")
    return done if result is None else done | {"result_json": _json(result)}


def _settled_dead(job: Job, event: Event) -> _Changes:
    return _final(job, event, _DEAD) | _failed(event)


def _waits(job: Job, event: Event) -> _Changes:
    return _free(job, event, _PENDING) | _wait(event)


def _wait(event: Event) -> _Changes:
    """How long: counted in boot time, or until a wall time where a user gave that alone."""
    delay_ms, next_attempt_at = event.get("delay_ms"), event["next_attempt_at"]
    if delay_ms is None:
        return {"next_attempt_at": next_attempt_at, "due_at": next_attempt_at}
    due_boot_us = event.boot_us + delay_ms * 1000
    return {"delay_ms": delay_ms, "next_attempt_at": next_attempt_at, "due_boot_us": due_boot_us}


def _retried(job: Job, event: Event) -> _Changes:
    return _waits(job, event) | _failed(event)


def _freed(job: Job, event: Event) -> _Changes:
    free = _free(job, event, _PENDING)
    return free if event.get("next_attempt_at") is None else free | _wait(event)


def _requeued(job: Job, event: Event) -> _Changes:
    anew = {"attempt_count": 0, "rescue_count": 0, "finished_at": None}
    unfinished = {"finished_boot": "", "finished_boot_us": 0}
    return _free(job, event, _PENDING) | anew | unfinished | _expiry(job, event)


def _expiry(job: Job, event: Event) -> _Changes:
    """A job that is requeued has all its time again."""
    if not job.expires_after_ms:
        return {}
    expires_at = from_text(event.occurred_at) + timedelta(milliseconds=job.expires_after_ms)
    expire_boot_us = event.boot_us + job.expires_after_ms * 1000
    return {"expires_at": to_text(expires_at), "expire_boot_us": expire_boot_us}


def _cancel_requested(_: Job, event: Event) -> _Changes:
    return {"cancel_requested_at": event.occurred_at}


def _cancelled(job: Job, event: Event) -> _Changes:
    cancelled = _final(job, event, _CANCELLED)
    return cancelled | _failed(event) if event.get("error_type") else cancelled


def _discarded(job: Job, event: Event) -> _Changes:
    return _final(job, event, _CANCELLED)


@dataclass(frozen=True, slots=True)
class _Fold:
    before: tuple[str, ...]
    change: Callable[[Job, Event], _Changes] | None


_AT_REST: _Changes = {
    "locked_by": None,
    "locked_until": None,
    "lease_ms": None,
    "lease_boot_us": None,
    "next_attempt_at": None,
    "delay_ms": None,
    "due_boot_us": 0,
    "due_at": "",
    "cancel_requested_at": None,
}
_OPEN = (_PENDING, _LEASED)
_FINAL = (_DONE, _DEAD, _CANCELLED)
_FOLDS = {
    "job.deduplicated": _Fold((*_OPEN, *_FINAL), None),
    "job.leased": _Fold((_PENDING,), _leased),
    "job.extended": _Fold((_LEASED,), _held),
    "job.done": _Fold((_LEASED,), _settled_done),
    "job.retry_scheduled": _Fold((_LEASED,), _retried),
    "job.dead": _Fold(_OPEN, _settled_dead),
    "job.snoozed": _Fold((_LEASED,), _waits),
    "job.lease_expired": _Fold((_LEASED,), _freed),
    "job.released": _Fold((_LEASED,), _freed),
    "job.requeued": _Fold((_DEAD, _CANCELLED), _requeued),
    "job.cancel_requested": _Fold(_OPEN, _cancel_requested),
    "job.cancelled": _Fold(_OPEN, _cancelled),
    "job.discarded": _Fold((_DEAD,), _discarded),
    "job.pruned": _Fold(_FINAL, None),
}
FOLDED = frozenset(_FOLDS)


def rebooted(job: Job, opened: Event) -> Job:
    """A job after the machine started anew: its lease is over, its delay and its time to expire
    are counted on.

    What is left of them is taken from wall time, but never more than the whole.
    """
    if job.status in _FINAL:
        return job
    changes: _Changes = {}
    if job.expire_boot_us:
        left = _left_us(job.expires_at, job.expires_after_ms, opened)
        changes["expire_boot_us"] = max(opened.boot_us + left, 1)
    if job.status == _LEASED:
        changes["lease_boot_us"] = None
    elif job.due_boot_us:
        changes["due_boot_us"] = opened.boot_us + _left_us(
            job.next_attempt_at, job.delay_ms, opened
        )
    return job._replace(**changes) if changes else job


def _left_us(until: str | None, whole_ms: int | None, opened: Event) -> int:
    """What is left of a wait after a reboot."""
    left = from_text(until or opened.occurred_at) - from_text(opened.occurred_at)
    left_ms = min(max(left / timedelta(milliseconds=1), 0), whole_ms or 0)
    return int(left_ms * 1000)
