"""Outcome: how a run of a handler ended, as its worker reports it; pure."""

from __future__ import annotations

from typing import Any

from tallybook.event import Event, record


@record
class Outcome:
    """How a run of a handler ended, as its worker reports it.

    ``settle`` is "done", "retry", "dead" or "snooze"; ``counted`` is False for an attempt that
    never reached the server. ``after_s`` is the delay that was asked for, ``until`` a wall time
    (RFC 3339) in its place.
    """

    job_id: str
    topic: str
    worker: str
    lease_token: int
    settle: str
    started_at: str
    duration_ms: float
    correlation_id: str | None = None
    result: Any = None
    error_type: str | None = None
    error: str | None = None
    traceback: str | None = None
    http_status: int | None = None
    endpoint: str | None = None
    replayed: bool = False
    after_s: float | None = None
    until: str | None = None
    counted: bool = True

    def fields(self) -> dict[str, Any]:
        """The fields that every event of a run carries."""
        told: dict[str, Any] = {
            "job_id": self.job_id,
            "topic": self.topic,
            "worker": self.worker,
            "lease_token": self.lease_token,
            "started_at": self.started_at,
            "duration_ms": self.duration_ms,
        }
        for name in ("correlation_id", "http_status", "endpoint"):
            value = getattr(self, name)
            if value is not None:
                told[name] = value
        if self.replayed:
            told["replayed"] = True
        return told

    def error_fields(self) -> dict[str, Any]:
        """The fields of a run that failed."""
        return {
            "error_type": self.error_type,
            "error": self.error,
            "traceback": self.traceback,
        }

    def refused(self, reason: str) -> Event:
        """The event of this settle when the lease is no longer its worker's."""
        return Event(
            "job.settle_refused", self.fields() | {"settle": self.settle, "reason": reason}
        )
