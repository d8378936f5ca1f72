"""What an action is in steps of the book: forward, and back.

A step is made from how entry and job stand now. Where they are already as the action leaves them,
because a power cut tore a change after its writes, the step has nothing left to do but its record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tallybook.book import Book, New
from tallybook.book.repairing import UNDONE, Step
from tallybook.entry import Entry, Invalidate, Put
from tallybook.ids import payload_digest
from tallybook.job import Job, Status
from tallybook.recover.plans import undofile
from tallybook.recover.plans.file import Action
from tallybook.recover.plans.past import Past
from tallybook.recover.plans.undofile import Before

State = tuple[int, str]
ABSENT: State = (0, "")


def key_of(plan: str, action: Action) -> str:
    """The idempotency key of the job that an action enqueues."""
    return f"plan-{plan}-{action.n}"


def forward(book: Book, plan: str, action: Action, past: Past) -> Step | str:
    """The step of an action; in words why its key is no longer as the plan found it."""
    if action.action == "requeue":
        return _requeue(book, action)
    found = _state(book.entry(action.entry_key)) if action.entry_key else ABSENT
    is_written = action.action != "enqueue" and found == _left(action)
    if not is_written and found != (action.version, action.digest):
        return _words(found, action)
    step = Step(action.n, action.entry_key, *found)
    if not is_written:
        step = replace(step, writes=_WRITES[action.action](plan, action))
    if action.action in ("enqueue", "merge") and key_of(plan, action) not in past.jobs:
        step = replace(step, new=_new(plan, action))
    return step


def _requeue(book: Book, action: Action) -> Step | str:
    named = action.job or {}
    job = book.job(str(named.get("job_id")))
    if job is None or job.lease_token != named["lease_token"]:
        return f"its job is {job.status if job else 'pruned'}"
    held = Step(
        action.n, job_id=job.job_id, job_status=str(job.status), lease_token=job.lease_token
    )
    if job.status == Status.PENDING:
        return held
    return (
        replace(held, rule="requeue")
        if job.status == named["job_status"]
        else f"its job is {job.status}"
    )


def _take(_: str, action: Action) -> tuple[Put]:
    return (Put(str(action.entry_key), action.value, origin="cloud").checked(),)


def _merge(_: str, action: Action) -> tuple[Put]:
    return (Put(str(action.entry_key), action.merged, pending=True).checked(),)


def _delete(plan: str, action: Action) -> tuple[Invalidate]:
    return (Invalidate(str(action.entry_key), reason=f"plan {plan}"),)


_WRITES: Mapping[str, Callable[[str, Action], tuple[Put | Invalidate, ...]]] = {
    "take_export": _take,
    "merge": _merge,
    "delete": _delete,
    "enqueue": lambda *_: (),
}


def _new(plan: str, action: Action) -> New:
    return New(
        str(action.topic),
        action.merged if action.action == "merge" else action.payload,
        idempotency_key=key_of(plan, action),
        correlation_id=f"plan-{plan}",
        enqueued_from=f"plan {plan}",
    )


def _state(entry: Entry | None) -> State:
    return (entry.version, payload_digest(entry.value)) if entry else ABSENT


def _left(action: Action) -> State:
    """The state of the entry after an action that writes it."""
    if action.action == "delete":
        return ABSENT
    value = action.merged if action.action == "merge" else action.value
    return action.version + 1, payload_digest(value)


def _words(found: State, action: Action) -> str:
    now = f"version {found[0]}" if found[0] else "no entry"
    then = f"version {action.version}" if action.version else "none"
    if found[0] == action.version:
        return f"its entry has another value of {now}"
    return f"its entry has {now} where the plan found {then}"


def back(book: Book, plan: str, action: Action, before: Before, past: Past) -> Step | str:
    """The step that takes an action back; in words why it cannot be taken back."""
    step = Step(action.n)
    if action.action in ("requeue", "enqueue", "merge"):
        job = _job_of(book, plan, action, past)
        if job is None or job.status != Status.PENDING:
            return f"its job is {job.status if job else 'pruned'}: what was sent cannot be undone"
        step = _ended(step, plan, job, action, before)
    if action.action in ("requeue", "enqueue"):
        return step
    if _state(book.entry(str(action.entry_key))) != _left(action):
        return "its entry was written since"
    put = undofile.put(action, before)
    write = (
        put.checked() if put else Invalidate(str(action.entry_key), reason=f"plan {plan} undone")
    )
    version, digest = _left(action)
    step = replace(step, entry_key=action.entry_key, version=version, digest=digest)
    return replace(step, writes=(write,), written_by=(before.entry or {}).get("job_id"))


def _job_of(book: Book, plan: str, action: Action, past: Past) -> Job | None:
    if action.action == "requeue":
        return book.job(str((action.job or {}).get("job_id")))
    job_id = past.jobs.get(key_of(plan, action))
    return book.job(job_id) if job_id else None


def _ended(step: Step, plan: str, job: Job, action: Action, before: Before) -> Step:
    """The step that ends a pending job: one that was requeued as it was before."""
    held = replace(step, job_id=job.job_id, job_status=str(job.status), lease_token=job.lease_token)
    death: dict[str, Any] = dict(before.death or {})
    if action.action != "requeue" or death.pop("status", "") != Status.DEAD:
        return replace(held, rule="cancel")
    return replace(
        held, rule="bury", death=tuple((death | {"reason": f"plan {plan} {UNDONE}"}).items())
    )
