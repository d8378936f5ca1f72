"""Where the value of a cache key comes from: every write of it, with who made it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tallybook.event import Event
from tallybook.layout import Layout
from tallybook.log import anchor as anchors
from tallybook.log.reader import Damage, Position, history

_SETTLES = (
    "job.done", "job.retry_scheduled", "job.dead", "job.snoozed", "job.released",
    "job.lease_expired", "job.cancelled",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Write:
    """One event of a key. ``attempt`` counts from 1; it, ``worker`` and ``lease_token`` are those
    of the job that wrote, None where none did or its lease is not in the log any more."""

    event: str
    occurred_at: str
    version: int | None
    value: Any
    origin: str | None
    reason: str | None
    job_id: str | None
    attempt: int | None
    worker: str | None
    lease_token: int | None
    writer: str
    seq: int
    segment: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """All that the log says of a key, in the order of history. ``pruned_seq`` is the last line
    that is not in the log any more; 0 where it begins at its beginning."""

    key: str
    writes: list[Write]
    events: list[Event]
    holes: int
    quarantined: int
    pruned_seq: int

    @property
    def complete(self) -> bool:
        """Whether no event of the key can be missing, but for those that were pruned."""
        return not self.holes and not self.quarantined


@dataclass
class _Leases:
    """Who holds which job, as the log goes on."""

    held: dict[str, Event] = field(default_factory=dict)

    def watch(self, event: Event) -> None:
        """Learn of an event of a job."""
        if event.name == "job.leased":
            self.held[event["job_id"]] = event
        elif event.name in _SETTLES:
            self.held.pop(event["job_id"], None)


def provenance(layout: Layout, key: str) -> Provenance:
    """Every event of a cache key, read from the log; of a damaged log what is left."""
    anchor = anchors.read(layout)
    leases, damage = _Leases(), Damage()
    writes: list[Write] = []
    events: list[Event] = []
    for event, position in history(layout, None, damage):
        leases.watch(event)
        if event.get("key") == key:
            events.append(event)
            writes.append(_write(event, position, leases.held.get(event.get("job_id") or "")))
    pruned_seq = anchor.position.seq if anchor else 0
    return Provenance(key, writes, events, len(damage.holes), damage.quarantined, pruned_seq)


def _write(event: Event, position: Position, lease: Event | None) -> Write:
    return Write(
        event=event.name,
        occurred_at=event.occurred_at,
        version=event.get("version"),
        value=event.get("value"),
        origin=event.get("origin"),
        reason=event.get("reason"),
        job_id=event.get("job_id"),
        attempt=lease.get("attempt_count", 0) + 1 if lease else None,
        worker=lease.get("worker") if lease else None,
        lease_token=lease.get("lease_token") if lease else None,
        writer=event.writer,
        seq=event.seq,
        segment=position.segment,
    )
