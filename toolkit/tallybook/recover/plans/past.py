"""Where a plan stands in the log: where it was made, and what was done of it since."""

from __future__ import annotations

from dataclasses import dataclass, field

from tallybook.book.repairing import UNDONE
from tallybook.errors import BadInput
from tallybook.layout import Layout
from tallybook.log.chain import NO_HASH, Position, from_json, link
from tallybook.log.reader import history, lines, reaches, segment, segments
from tallybook.recover.plans.file import Plan


@dataclass
class Past:
    """What the log says of plans since the place that a plan was made from."""

    done: set[int] = field(default_factory=set)
    is_undone: bool = False
    others: list[str] = field(default_factory=list)
    jobs: dict[str, str] = field(default_factory=dict)


def look(layout: Layout, plan: Plan, *, may_be_old: bool = False) -> Past:
    """What the log says of this plan and of others since its place.

    Raises BadInput where that place is not in this log, or, unless it ``may_be_old``, where another
    plan was applied since.
    """
    position = _require_own(layout, plan)
    past = Past()
    for event, _ in history(layout, position):
        if event.name == "plan.applied" and event.get("plan") == plan.head.plan:
            steps = set(event.get("steps") or ())
            past.is_undone = event.get("reason") == UNDONE
            past.done = past.done - steps if past.is_undone else past.done | steps
        elif event.name == "plan.applied":
            past.others.append(str(event.get("plan")))
        elif event.name == "job.enqueued" and f"plan-{plan.head.plan}-" in event["idempotency_key"]:
            past.jobs[event["idempotency_key"]] = event["job_id"]
    if past.others and not past.done and not may_be_old:
        raise BadInput(
            f"plan {plan.head.plan} is older than the last apply: plan {past.others[-1]} was "
            "applied since it was made; reconcile again and make another"
        )
    return past


def _require_own(layout: Layout, plan: Plan) -> Position:
    """The place that the plan was made from. Raises BadInput where this log has another there."""
    try:
        position = from_json(dict(plan.head.position))
    except (KeyError, TypeError, ValueError):
        raise BadInput(f"plan {plan.head.plan} says no place in a log: make another") from None
    writers = {one.writer for one in segments(layout)}
    if position.writer not in writers:
        raise BadInput(
            f"plan {plan.head.plan} is for another book (node {plan.head.node_id}, writer "
            f"{position.writer[:8]}), not for {layout.root}: name that book with --book"
        )
    if not reaches(layout, position) or _hash_at(layout, position) != position.hash:
        raise BadInput(
            f"plan {plan.head.plan} was made from a log that {layout.root} does not have any more "
            "(it was pruned, restored or lost its end): reconcile again and make another"
        )
    return position


def _hash_at(layout: Layout, position: Position) -> bytes:
    """The hash of the chain at a place, from the begin of its segment on."""
    path = layout.log / position.segment
    found = segment(path if path.exists() else path.with_name(path.name + ".zst"))
    begins = found.opened.get("previous_hash") if found.opened and found.first_seq > 1 else None
    value = bytes.fromhex(begins) if begins else NO_HASH
    for line in lines(found.path):
        if line.end > position.offset:
            break
        value = link(value, line.raw)
    return value
