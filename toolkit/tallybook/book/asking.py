"""What is asked of a book, what it answers, and what of it can be kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tallybook import payload as payloads
from tallybook.book.caching import Write
from tallybook.clock import to_text
from tallybook.errors import BadInput
from tallybook.event import Event, record
from tallybook.ids import payload_digest
from tallybook.job import Job
from tallybook.outcome import Outcome
from tallybook.settings import Settings, TopicSettings

_LONGEST_DELAY_S = 366 * 86400
_ENDS = frozenset(
    f"job.{name}"
    for name in ("done", "retry_scheduled", "dead", "snoozed", "cancelled", "settle_refused")
)


@record
class New:
    """A job to enqueue. ``delay_s`` or ``next_attempt_at`` (with a zone) make it due later; after
    ``expires_after_s`` it is dead unless it is done. Jobs of one ``ordering_key`` of a topic run
    one after the other; with ``keep_latest`` it takes the place of those that are pending. Of the
    jobs of one ``resource`` at most one runs."""

    topic: str
    payload: Any
    idempotency_key: str | None = None
    priority: int = 0
    delay_s: float | None = None
    next_attempt_at: datetime | None = None
    correlation_id: str | None = None
    enqueued_from: str | None = None
    expires_after_s: float | None = None
    timeout_s: float | None = None
    ordering_key: str | None = None
    resource: str | None = None
    keep_latest: bool = False

    def checked(self, settings: Settings) -> dict[str, Any]:
        """The fields of ``job.enqueued`` but its id; only a key may be None. Raises BadInput for
        what cannot be kept."""
        if not -1000 <= self.priority <= 1000:
            raise BadInput(f"priority {self.priority}: use a whole number from -1000 to 1000")
        payloads.checked(self.payload)
        rules = settings.topic(self.topic)
        fields = {
            "topic": payloads.checked_topic(self.topic),
            "payload": self.payload,
            "payload_digest": payload_digest(self.payload),
            "priority": self.priority,
            "idempotency_key": payloads.checked_text("idempotency key", self.idempotency_key),
            "max_attempts": rules.max_attempts,
        }
        if self.correlation_id is not None:
            told = payloads.checked_text("correlation id", self.correlation_id)
            fields["correlation_id"] = told
        if self.enqueued_from is not None:
            fields["enqueued_from"] = payloads.checked_text("enqueued from", self.enqueued_from)
        if self.timeout_s is not None or rules.timeout_s:
            fields["timeout_s"] = self._timeout_s(rules)
        if self.delay_s is not None or self.next_attempt_at is not None:
            fields |= self._due()
        if self.expires_after_s is not None:
            fields |= self._expiry(self.expires_after_s)
        if self.ordering_key is not None or self.resource is not None or self.keep_latest:
            fields |= self._order()
        return fields

    def _order(self) -> dict[str, Any]:
        if self.keep_latest and self.ordering_key is None:
            raise BadInput("keep-latest: give an ordering key; the latest job of it is kept")
        told = {
            "ordering_key": payloads.checked_text("ordering key", self.ordering_key),
            "resource": payloads.checked_text("resource", self.resource),
            "keep_latest": self.keep_latest or None,
        }
        return {name: value for name, value in told.items() if value is not None}

    def _timeout_s(self, rules: TopicSettings) -> float:
        if self.timeout_s is None:
            return rules.timeout_s
        if not 0.001 <= self.timeout_s <= _LONGEST_DELAY_S:
            raise BadInput(f"timeout {self.timeout_s:g} s: use 0.001 s to 366 days")
        return self.timeout_s

    def _expiry(self, after_s: float) -> dict[str, Any]:
        if not 0.001 <= after_s <= _LONGEST_DELAY_S:
            raise BadInput(f"expires after {after_s:g} s: use 0.001 s to 366 days")
        return {"expires_after_ms": round(after_s * 1000)}

    def _due(self) -> dict[str, Any]:
        if self.delay_s is not None and self.next_attempt_at is not None:
            raise BadInput("give a delay or a time, not both")
        if self.delay_s is not None:
            if not 0 <= self.delay_s <= _LONGEST_DELAY_S:
                raise BadInput(f"delay {self.delay_s:g} s: use 0 to 366 days")
            delay_ms = round(self.delay_s * 1000)
            return {"delay_ms": delay_ms} if delay_ms else {}
        if self.next_attempt_at is not None:
            if self.next_attempt_at.tzinfo is None:
                raise BadInput(f"{self.next_attempt_at}: give a time with its zone")
            return {"next_attempt_at": to_text(self.next_attempt_at)}
        return {}


@record
class Receipt:
    """The job is on disk. ``is_new`` is False where it was already there under the same key;
    ``superseded`` are the pending jobs that it took the place of."""

    job_id: str
    is_new: bool
    superseded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """A lease that a worker holds; ``started_at`` once its handler runs."""

    job_id: str
    lease_token: int
    started_at: str | None = None


@dataclass(frozen=True, slots=True)
class Want:
    """What a worker would claim: at most ``limit`` due jobs of ``topics`` (none: of any)."""

    worker: str
    topics: Sequence[str] = ()
    lease_s: float = 60.0
    limit: int = 1


@record
class Settled:
    """A run that ended, with the cache writes to make if it is done."""

    outcome: Outcome
    puts: Sequence[Write] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """What came of settling and claiming in one change.

    ``refused`` says by job id why a settle was too late; ``jobs`` are leased now.
    """

    events: list[Event] = field(default_factory=list)
    refused: Mapping[str, str] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)

    @property
    def ends(self) -> dict[str, str]:
        """{job id: name of the event} that says how each run ended."""
        return {event["job_id"]: event.name for event in self.events if event.name in _ENDS}
