"""``tallybook trace``: every event of one job or correlation id, straight from the log.

What was pruned from the log comes from the archive that ``tallybook compact`` made, if at all.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallybook.cli import output
from tallybook.errors import BadInput, IncompleteInput
from tallybook.event import Event
from tallybook.layout import Layout, find_book, is_book, pruned_ends, require_book
from tallybook.payload import visible

if TYPE_CHECKING:
    from tallybook.log.reader import Damage

INCOMPLETE = 4
HELP = "every event of one job or correlation id, in order"
_HIDDEN = {"job_id", "topic", "correlation_id", "payload_digest", "traceback"}


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("id", metavar="ID", help="a job id, idempotency key or correlation id")
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="where ops write; of what was pruned DIR/archive is asked "
        "(default: ./tallybook-out/<node_id>)",
    )
    output.add_book(parser)
    output.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """0; 4 where the log is damaged, or pruned in a job, with the events that are left. Raises
    BadInput, or IncompleteInput, where nothing has that id."""
    from tallybook.log.reader import Damage

    root = find_book(args.book)
    if Layout(root).imported.exists() or (not is_book(root) and any(root.glob("node=*"))):
        return _without_log(root, args)
    layout = require_book(root)
    damage = Damage()
    found, pruned = _found(layout, args, damage)
    missing = lost(len(damage.holes), damage.quarantined)
    said = "; ".join(filter(None, (missing, pruned)))
    if not found:
        kind = IncompleteInput if missing else BadInput
        raise kind(f"no event in {layout.log} has the id {args.id!r}{said and f'; {said}'}")
    complete = not missing and not (pruned and _begins_late(found))
    told = {"id": args.id, "complete": complete, "events": [shown(event) for event in found]}
    output.answer(told, args.json, text=lambda: "\n".join(map(line, found)))
    if said:
        sys.stderr.write(f"tallybook: {said}\n")
    return 0 if complete else INCOMPLETE


def _found(layout: Layout, args: argparse.Namespace, damage: Damage) -> tuple[list[Event], str]:
    """The events of the jobs sought, and in words what of the log was pruned and is nowhere."""
    from tallybook.log.reader import history

    job_ids = {args.id}
    before, pruned = _pruned(layout, args, job_ids)
    known = len(job_ids)
    after = [e for e, _ in history(layout, None, damage) if _concerns(e, args.id, job_ids)]
    if len(job_ids) > known:
        before, pruned = _pruned(layout, args, job_ids)
    return before + after, pruned


def _pruned(layout: Layout, args: argparse.Namespace, job_ids: set[str]) -> tuple[list[Event], str]:
    """The same of what the log no longer has, from the archive; learns the ids of the jobs."""
    ends = sum(pruned_ends(layout).values())
    if not ends:
        return [], ""
    if not find_spec("duckdb"):
        return [], (
            f"the log was pruned of {output.counted(ends, 'event')}; what 'tallybook compact' kept "
            "of them is read with the extra ops: pip install 'tallybook[ops]'"
        )
    from tallybook.ops.pruned import pruned

    archive = pruned(layout, Path(args.out) if args.out else None)
    found = archive.events(job_ids)
    job_ids |= {event["job_id"] for event in found if event.get("job_id")}
    return found, _nowhere(archive.missing, archive.folder)


def _nowhere(missing: int, folder: Path) -> str:
    if not missing:
        return ""
    return (
        f"the log was pruned, and of {output.counted(missing, 'event')} there is nothing in "
        f"{folder}: name the folder that 'tallybook compact' wrote into with --out DIR"
    )


def _begins_late(found: list[Event]) -> bool:
    """Whether the beginning of a job is not among its events."""
    enqueued = {event["job_id"] for event in found if event.name == "job.enqueued"}
    return any(event.get("job_id") not in {None, *enqueued} for event in found)


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
