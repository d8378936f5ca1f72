"""Events that were pruned from the log, from the archive: those of some jobs, as the log had them.

The archive keeps the fields that ``fields`` names; a field that it does not know is not among them.
"""

import json
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tallybook.clock import to_text
from tallybook.event import Event
from tallybook.layout import Layout, pruned_ends, segment_name
from tallybook.ops import archive, memory, statements
from tallybook.ops.fields import FIELDS
from tallybook.ops.survey import survey

_STAMPS = ("v", "seq", "event", "occurred_at", "boot_us", "writer", "boot_id", "node_id")


@dataclass(frozen=True, slots=True)
class Pruned:
    """What the archive in ``folder`` holds of a pruned log: ``files``, the position before each
    segment, and how many events that were pruned it does not hold."""

    folder: Path
    files: list[str]
    bases: dict[str, int]
    missing: int

    def events(self, ids: Collection[str]) -> list[Event]:
        """The events of the jobs that ``ids`` name, by job id, correlation id or idempotency key,
        in the order of history."""
        if not self.files:
            return []
        asked = {"files": self.files, "ids": list(ids)}
        with closing(memory.connect()) as connection:
            found = connection.execute(statements.query("pruned_events"), asked)
            names = [column[0] for column in found.description or ()]
            rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        rows.sort(key=lambda row: self.bases[row["segment"]] + row["seq"])
        return [_event(row) for row in rows]


def pruned(place: Layout, out: Path | None = None) -> Pruned:
    """What the archive in the ops folder ``out`` holds of what was pruned from the log."""
    found = survey(place, out)
    there = {segment_name(path) for path in place.segments()}
    entries = [one for one in (*found.archived, *found.moved) if one.segment not in there]
    files = [str(archive.parquet(found.folder, one.segment)) for one in entries if one.rows]
    bases = {one.segment: one.base for one in found.openings}
    missing = sum(pruned_ends(place).values()) - sum(one.numbers for one in entries)
    return Pruned(found.folder, files, bases, max(missing, 0))


def _event(row: dict[str, Any]) -> Event:
    fields = {
        name: _value(row[name], kind)
        for name, kind in FIELDS.items()
        if name not in _STAMPS and row[name] is not None
    }
    stamp = to_text(row["occurred_at"]), row["boot_us"], row["writer"], row["boot_id"]
    return Event(row["event"], fields, row["seq"], *stamp)


def _value(cell: Any, kind: str) -> Any:
    """A cell as the log has it: JSON by its text, a time as text, a whole number without point."""
    if kind == "json":
        return json.loads(cell)
    if isinstance(cell, datetime):
        return to_text(cell)
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell
