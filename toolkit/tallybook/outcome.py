"""Outcome: how a run of a handler ended, as its worker reports it; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallybook.clock import Moment
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

    # the events that a settle can be; which one it is, the rules of ``Job`` say

    def done(self, attempt_count: int) -> Event:
        """The event of a job that is done with this run."""
        told = {"attempt_count": attempt_count, "result": self.result}
        return Event("job.done", self.fields() | told)

    def snoozed(self, attempt_count: int, moment: Moment) -> Event:
        """The event of a job that asked to be run again later."""
        delay_ms = None if self.until else round((self.after_s or 0) * 1000)
        waits = {
            "attempt_count": attempt_count,
            "delay_ms": delay_ms,
            "next_attempt_at": self.until or moment.wall(delay_ms or 0),
        }
        return Event("job.snoozed", self.fields() | waits)

    def retried(self, attempt_count: int, delay_ms: int, moment: Moment) -> Event:
        """The event of a job that is tried again after ``delay_ms``."""
        asked_ms = None if self.after_s is None else round(self.after_s * 1000)
        waits = {
            "attempt_count": attempt_count,
            "delay_ms": delay_ms,
            "next_attempt_at": moment.wall(delay_ms),
            "retry_after_ms": asked_ms,
            "reason": None if self.counted else "not_reached",
        }
        return Event("job.retry_scheduled", self.fields() | self.error_fields() | waits)

    def died(self, attempt_count: int, reason: str, skips: Mapping[str, Any]) -> Event:
        """The event of a job that goes to the dead letters; ``skips`` as its death says it."""
        told = {"attempt_count": attempt_count, "reason": reason, **skips}
        return Event("job.dead", self.fields() | self.error_fields() | told)

    def cancelled(self, reason: str) -> Event:
        """The event of a job that was to be cancelled and did not die of itself."""
        told = self.fields() | self.error_fields() | {"reason": reason}
        return Event("job.cancelled", told)

    def refused(self, reason: str) -> Event:
        """The event of this settle when the lease is no longer its worker's."""
        told = {"settle": self.settle, "reason": reason}
        return Event("job.settle_refused", self.fields() | told)
