"""``tallybook trace``: every event of one job or correlation id, straight from the log."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tallybook.cli import output
from tallybook.errors import BadInput, IncompleteInput
from tallybook.event import Event
from tallybook.layout import Layout, find_book, is_book, require_book
from tallybook.payload import visible

INCOMPLETE = 4
HELP = "every event of one job or correlation id, in order"
_HIDDEN = {"job_id", "topic", "correlation_id", "payload_digest", "traceback"}


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("id", metavar="ID", help="a job id, idempotency key or correlation id")
    output.add_book(parser)
    output.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """0; 4 where the log is damaged, with the events that are left. Raises BadInput, or
    IncompleteInput, where nothing in the log has that id."""
    from tallybook.log.reader import Damage, history

    root = find_book(args.book)
    if Layout(root).imported.exists() or (not is_book(root) and any(root.glob("node=*"))):
        return _without_log(root, args)
    layout = require_book(root)
    job_ids, damage = {args.id}, Damage()
    found = [e for e, _ in history(layout, None, damage) if _concerns(e, args.id, job_ids)]
    missing = lost(len(damage.holes), damage.quarantined)
    if not found:
        kind = IncompleteInput if missing else BadInput
        words = f"no event in {layout.log} has the id {args.id!r}{_pruned(layout)}"
        raise kind(words + (f"; {missing}" if missing else ""))
    told = {"id": args.id, "complete": not missing, "events": [shown(event) for event in found]}
    output.answer(told, args.json, text=lambda: "\n".join(map(line, found)))
    if missing:
        sys.stderr.write(f"tallybook: {missing}\n")
    return INCOMPLETE if missing else 0


def _pruned(layout: Layout) -> str:
    from tallybook.log import anchor

    seq = anchor.position(layout).seq
    return f"; its lines up to seq {seq} were pruned" if seq else ""


def _without_log(book: Path, args: argparse.Namespace) -> int:
    """The same of an imported book, or of a fleet: of what is not one log of ours."""
    from tallybook import ops

    with ops.open(book) as warehouse:
        found = ops.trace(warehouse, args.id).rows(named=True)
        notes = warehouse.notes
    if not found:
        raise BadInput(f"no event in {book} has the id {args.id!r}")
    events = [row | {"occurred_at": row["occurred_at"].isoformat()} for row in found]
    told = {"id": args.id, "complete": not notes, "events": events}
    names = ("occurred_at", "seq", "event", "job_id", "worker", "what")
    output.answer(told, args.json, text=lambda: output.table(events, names))
    return INCOMPLETE if notes else 0


def lost(holes: int, quarantined: int) -> str:
    """What a damaged log left out, in words; empty of a whole one."""
    if not holes and not quarantined:
        return ""
    told, lines = output.counted(holes, "hole"), output.counted(quarantined, "damaged line")
    return f"the log has {told} and {lines}: events may be missing; see: tallybook log verify"


def _concerns(event: Event, sought: str, job_ids: set[str]) -> bool:
    """Whether an event belongs to the jobs sought; learns their ids on the way."""
    by_name = sought in (event.get("correlation_id"), event.get("idempotency_key"))
    if by_name and event.get("job_id"):
        job_ids.add(event["job_id"])
    return by_name or event.get("job_id") in job_ids


def shown(event: Event) -> dict[str, Any]:
    """An event as one JSON object."""
    place = {"seq": event.seq, "event": event.name, "occurred_at": event.occurred_at}
    return place | {"boot_us": event.boot_us, "writer": event.writer} | dict(event.fields)


def line(event: Event) -> str:
    """An event as a line for a person."""
    facts = " ".join(
        f"{name}={_words(value)}"
        for name, value in event.fields.items()
        if name not in _HIDDEN and value is not None
    )
    return f"{event.occurred_at}  {event.seq:>8}  {event.name:<20}  {facts}"


def _words(value: Any) -> str:
    return visible(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
