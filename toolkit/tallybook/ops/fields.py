"""The fields of a log line that the warehouse reads, and the kind of each.

A kind says what a value must be for its line to count as readable.
Text takes any JSON value as its text, so that an id is never turned into a number.
A field that is not named here is left unread; the log keeps it.
"""

from typing import Literal

Kind = Literal["text", "whole", "number", "moment", "flag", "json"]

REQUIRED = ("v", "seq", "event", "occurred_at")

FIELDS: dict[str, Kind] = {
    "v": "whole",
    "seq": "whole",
    "event": "text",
    "occurred_at": "moment",
    "boot_us": "whole",
    "job_id": "text",
    "topic": "text",
    "payload": "json",
    "payload_digest": "text",
    "priority": "whole",
    "idempotency_key": "text",
    "correlation_id": "text",
    "enqueued_from": "text",
    "max_attempts": "whole",
    "delay_ms": "number",
    "next_attempt_at": "moment",
    "resource": "text",
    "ordering_key": "text",
    "expires_at": "moment",
    "timeout_s": "number",
    "worker": "text",
    "lease_token": "whole",
    "lease_ms": "number",
    "locked_until": "moment",
    "started_at": "moment",
    "duration_ms": "number",
    "attempt_count": "whole",
    "rescue_count": "whole",
    "result": "json",
    "http_status": "whole",
    "endpoint": "text",
    "replayed": "flag",
    "retry_after_ms": "number",
    "error_type": "text",
    "error": "text",
    "traceback": "text",
    "settle": "text",
    "reason": "text",
    "key": "text",
    "value": "json",
    "version": "json",
    "base_version": "json",
    "etag": "text",
    "last_modified": "text",
    "origin": "text",
    "pending": "flag",
    "ttl_s": "number",
    "depends_on": "json",
    "value_schema": "text",
    "synced_at": "moment",
    "writer": "text",
    "node_id": "text",
    "host": "text",
    "pid": "whole",
    "boot_id": "text",
    "versions": "json",
    "previous_hash": "text",
    "previous_writer": "text",
    "previous_seq": "whole",
    "first_lost_seq": "whole",
    "last_lost_seq": "whole",
    "bytes": "whole",
    "threads": "whole",
    "topics": "json",
    "keys": "whole",
    "events_read": "whole",
    "parity": "text",
}

# What DuckDB is told to expect. Numbers and flags arrive as JSON, times as text, and are checked in
# SQL: a declared number would be coerced.
COLUMNS: dict[str, str] = {
    name: "VARCHAR" if kind in ("text", "moment") else "JSON" for name, kind in FIELDS.items()
}

_DECLARED = {"text": "VARCHAR", "whole": "BIGINT", "number": "DOUBLE", "moment": "TIMESTAMP",
             "flag": "BOOLEAN", "json": "JSON"}  # fmt: skip

# The same where a manifest proves that the lines are as the log wrote them: nothing to coerce.
PROVEN_COLUMNS: dict[str, str] = {name: _DECLARED[kind] for name, kind in FIELDS.items()}
