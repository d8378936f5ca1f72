"""The event: one JSON object a line of the log, and its codec.

Every line carries ``v``, ``seq``, ``event``, ``occurred_at`` and ``boot_us``; the other fields
stand in ``EVENTS``. The writer and the boot of a line are those of its segment's ``log.opened``.
Readers ignore fields that they do not know. docs/log-format.md is the specification.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, dataclass_transform

import orjson

from tallybook.clock import Moment
from tallybook.ids import new_writer_id
from tallybook.payload import redacted
from tallybook.settings import Keeping

VERSION = 1
_Kind = TypeVar("_Kind")

_JOB = ("job_id", "topic", "correlation_id")
_LEASE = (*_JOB, "worker", "lease_token")
_RUN = (
    *_LEASE,
    "started_at",
    "duration_ms",
    "attempt_count",
    "http_status",
    "endpoint",
    "replayed",
)
_ERROR = ("error_type", "error", "traceback")
_ENTRY = (
    "key", "value", "version", "base_version", "etag", "last_modified", "origin", "pending",
    "ttl_s", "depends_on", "value_schema", "synced_at", "job_id",
)  # fmt: skip

EVENTS: Mapping[str, tuple[str, ...]] = {
    "log.opened": (
        "writer", "node_id", "host", "pid", "boot_id", "versions",
        "previous_hash", "previous_writer", "previous_seq",
    ),
    "log.repaired": ("reason", "writer", "first_lost_seq", "last_lost_seq", "bytes"),
    "job.enqueued": (
        *_JOB, "payload", "payload_digest", "priority", "idempotency_key", "enqueued_from",
        "max_attempts", "delay_ms", "next_attempt_at", "resource", "ordering_key", "expires_at",
        "expires_after_ms", "timeout_s", "keep_latest", "redacted",
    ),
    "job.deduplicated": (
        *_JOB, "idempotency_key", "payload_digest", "enqueued_from", "redacted",
    ),
    "job.leased": (
        *_LEASE, "lease_ms", "locked_until", "attempt_count", "rescue_count", "bucket_full_us",
    ),
    "job.extended": (*_LEASE, "lease_ms", "locked_until", "started_at"),
    "job.done": (*_RUN, "result", "redacted"),
    "job.retry_scheduled": (
        *_RUN, *_ERROR, "delay_ms", "next_attempt_at", "retry_after_ms", "reason",
    ),
    "job.dead": (*_RUN, *_ERROR, "rescue_count", "reason", "ordering"),
    "job.snoozed": (*_RUN, "delay_ms", "next_attempt_at"),
    "job.lease_expired": (
        *_LEASE, "locked_until", "rescue_count", "reason", "delay_ms", "next_attempt_at",
    ),
    "job.released": (*_LEASE, "rescue_count", "reason"),
    "job.settle_refused": (
        *_LEASE, "settle", "started_at", "duration_ms", "http_status", "endpoint", "replayed",
        "reason",
    ),
    "job.requeued": (*_JOB, "reason"),
    "job.cancel_requested": (*_JOB, "reason"),
    "job.cancelled": (*_RUN, *_ERROR, "reason", "superseded_by"),
    "job.discarded": (*_JOB, "reason"),
    "job.pruned": (*_JOB, "reason"),
    "lock.acquired": (*_LEASE, "resource"),
    "lock.released": (*_LEASE, "resource", "duration_ms", "reason"),
    "cache.put": _ENTRY,
    "cache.invalidated": ("key", "reason", "job_id"),
    "cache.refresh_started": ("key", "worker"),
    "cache.rebuilt": ("reason", "keys", "events_read", "parity"),
    "conflict.detected": ("key", "job_id", "policy", "reason"),
    "conflict.resolved": ("key", "job_id", "policy", "reason"),
    "topic.paused": ("topic", "reason"),
    "topic.resumed": ("topic", "reason"),
    "network.lost": ("reason",),
    "network.found": ("reason",),
    "worker.started": ("worker", "pid", "host", "topics", "threads", "lease_ms"),
    "worker.stopped": ("worker", "reason"),
    "plan.applied": ("plan", "reason", "steps"),
}  # fmt: skip


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(kind: type[_Kind]) -> type[_Kind]:
    """A frozen record, frozen by the type checker alone: freezing at run time costs a
    microsecond and more, and a queue makes many."""
    return dataclass(slots=True)(kind)


@record
class Event:
    """A change that happened. ``seq`` is 0 until the log has taken it.

    ``withheld`` are the true values of fields that the log does not get, or not whole: whoever
    made the event can read them, whoever reads it from the log cannot.
    """

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    seq: int = 0
    occurred_at: str = ""
    boot_us: int = 0
    writer: str = ""
    boot_id: str = ""
    withheld: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.withheld[name] if name in self.withheld else self.fields[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The field ``name``, or ``default`` where this event has none."""
        return self.withheld[name] if name in self.withheld else self.fields.get(name, default)

    def withholding(self, keeping: Keeping) -> Event:
        """This event with all that ``keeping`` does not let into the log moved to ``withheld``."""
        if keeping.keeps_all:
            return self
        left_out = [name for name in keeping.leaves_out if self.fields.get(name) is not None]
        kept = {name: value for name, value in self.fields.items() if name not in left_out}
        named = list(left_out)
        for name in {"payload", "result"} & kept.keys():
            kept[name], places = redacted(kept[name], keeping.redact, name)
            named += places
        if not named:
            return self
        changed = {place.partition(".")[0].partition("[")[0] for place in named}
        withheld = {name: self.fields[name] for name in changed}
        return Event(self.name, kept | {"redacted": named}, withheld=withheld)

    def as_logged(self) -> Event:
        """This event as the log has it."""
        return replace(self, withheld={})

    def stamped(self, seq: int, writer: str, occurred_at: str, boot_us: int, boot_id: str) -> Event:
        """This event as the log takes it."""
        return Event(
            self.name, self.fields, seq, occurred_at, boot_us, writer, boot_id, self.withheld
        )


class BadLine(ValueError):
    """A line is no event; the message is the reason in a few words."""


def encode(event: Event) -> bytes:
    """The line of a stamped event, without its newline. Fields that are None are left out."""
    head = (
        f'{{"v":{VERSION},"seq":{event.seq},"event":"{event.name}",'
        f'"occurred_at":"{event.occurred_at}","boot_us":{event.boot_us}'
    )
    fields = event.fields
    if None in fields.values():
        fields = {name: value for name, value in fields.items() if value is not None}
    if not fields:
        return head.encode() + b"}"
    return b"%b,%b" % (head.encode(), orjson.dumps(fields)[1:])


def decode(line: bytes, writer: str = "", boot_id: str = "") -> Event:
    """The event of a line; ``writer`` and ``boot_id`` come from the segment's ``log.opened``.

    Raises BadLine with the reason for anything that is not one whole event.
    """
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BadLine(f"not JSON: {error.msg.lower()} at column {error.colno}") from None
    if not isinstance(fields, dict):
        raise BadLine("not a JSON object")
    version, seq, name = fields.pop("v", None), fields.pop("seq", None), fields.pop("event", None)
    occurred_at, boot_us = fields.pop("occurred_at", None), fields.pop("boot_us", None)
    if version != VERSION:
        raise BadLine(f"v is {version!r}; this version reads v {VERSION}")
    if not _is_count(seq) or not _is_count(boot_us):
        raise BadLine("seq and boot_us must be whole numbers from 0 up")
    if not isinstance(name, str) or not isinstance(occurred_at, str):
        raise BadLine("event and occurred_at must be text")
    if name == "log.opened":
        writer, boot_id = str(fields.get("writer", "")), str(fields.get("boot_id", ""))
    return Event(name, fields, seq, occurred_at, boot_us, writer, boot_id)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def opened(
    moment: Moment,
    *,
    writer: str | None,
    node_id: str,
    host: str,
    pid: int,
    versions: Mapping[str, str],
    previous: Mapping[str, Any],
) -> Event:
    """The first event of a segment; without ``writer`` a new life of the log begins."""
    return Event(
        "log.opened",
        {
            "writer": writer or new_writer_id(),
            "node_id": node_id,
            "host": host,
            "pid": pid,
            "boot_id": moment.boot_id,
            "versions": dict(versions),
            **previous,
        },
    )
