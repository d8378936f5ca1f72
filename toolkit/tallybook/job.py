"""Job: its state and its rules, all pure.

A rule looks at a job and returns the event that follows from it. The other half, the job that an
event leaves behind, is in ``tallybook.transitions``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import orjson

from tallybook.clock import Moment, boot_mark, from_text
from tallybook.event import Event
from tallybook.outcome import Outcome
from tallybook.settings import TopicSettings


class Status(StrEnum):
    """Where a job stands."""

    PENDING = "pending"
    LEASED = "leased"
    DONE = "done"
    DEAD = "dead"
    CANCELLED = "cancelled"


NOT_IN_LINE, IN_LINE, AT_FRONT = range(3)
WAITS_FOR_LINE = "ordering_key"
WAITS_FOR_RESOURCE = "resource"


class Job(NamedTuple):
    """One job. Instants are RFC 3339 text, ``*_boot_us`` µs of boot time, ``ordinal`` its age.

    ``line`` says whether it is in the line of its ordering key, and whether at the front;
    ``waits_for`` what keeps a pending job from being claimed also once it is due: see
    ``tallybook.order``. A tuple, since a queue makes many: it is the row of the table ``jobs``.
    """

    # what enqueueing fixed
    job_id: str
    topic: str
    payload_json: str
    payload_digest: str
    idempotency_key: str
    ordinal: int = 0
    priority: int = 0
    max_attempts: int = 10
    correlation_id: str | None = None
    enqueued_from: str | None = None
    resource: str | None = None
    ordering_key: str | None = None
    expires_after_ms: int | None = None
    timeout_s: float | None = None
    created_at: str = ""
    payload_bytes: int = 0
    # what events change, from ``status`` on
    status: str = Status.PENDING.value  # plain text, which SQLite need not adapt
    attempt_count: int = 0
    rescue_count: int = 0
    next_attempt_at: str | None = None
    delay_ms: int | None = None
    due_boot_us: int = 0
    due_at: str = ""
    expires_at: str | None = None
    expire_boot_us: int = 0
    finished_boot: str = ""
    finished_boot_us: int = 0
    last_error: str | None = None
    error_type: str | None = None
    locked_by: str | None = None
    locked_until: str | None = None
    lease_token: int = 0
    lease_ms: int | None = None
    lease_boot_us: int | None = None
    result_json: str | None = None
    updated_at: str = ""
    finished_at: str | None = None
    cancel_requested_at: str | None = None
    line: int = NOT_IN_LINE
    waits_for: str | None = None

    @property
    def payload(self) -> Any:
        """The payload as Python objects, parsed anew each time; None where it is lost."""
        return orjson.loads(self.payload_json) if self.payload_json else None

    @property
    def payload_is_lost(self) -> bool:
        """Whether this job was folded from a log that does not keep its payload, or not whole."""
        return not self.payload_json

    def changed(self, columns: Mapping[str, Any]) -> Job:
        """This job with other values in some columns: ``_replace`` in a third of the time."""
        row = list(self)
        for name, value in columns.items():
            row[_PLACES[name]] = value
        return Job._make(row)

    @property
    def can_never_run(self) -> bool:
        """Whether it waits, or is dead, for want of a payload that was lost."""
        waits = self.payload_is_lost and self.status == Status.PENDING
        return waits or self.error_type == "PayloadLost"

    def named(self) -> dict[str, Any]:
        """The fields that name this job in every event of it."""
        if self.correlation_id is None:
            return {"job_id": self.job_id, "topic": self.topic}
        return {
            "job_id": self.job_id,
            "topic": self.topic,
            "correlation_id": self.correlation_id,
        }

    def is_expired(self, moment: Moment) -> bool:
        """Whether its ``expires_after`` has passed by boot time."""
        return 0 < self.expire_boot_us <= moment.boot_us

    def ended_s(self, moment: Moment) -> float | None:
        """Seconds since a final job ended; None while it is open. By boot time within one boot,
        by wall time over a reboot."""
        if self.finished_at is None:
            return None
        if self.finished_boot == boot_mark(moment.boot_id):
            return (moment.boot_us - self.finished_boot_us) / 1e6
        return max((moment.now - from_text(self.finished_at)).total_seconds(), 0.0)

    def holds_key(self, rules: TopicSettings, moment: Moment) -> bool:
        """Whether its idempotency key stands for this job: while it is open, and for
        ``dedupe_window_s`` after its end."""
        ended_s = self.ended_s(moment)
        return ended_s is None or ended_s < rules.dedupe_window_s

    # rules: what follows from this job now

    def expire(self, rules: TopicSettings) -> Event:
        """The event of a pending job that is of no use any more."""
        why = {
            "attempt_count": self.attempt_count,
            "error_type": "Expired",
            "error": f"not done by {self.expires_at}",
            "reason": "expired",
        }
        return Event("job.dead", self.named() | why | self._skips(rules))

    def _skips(self, rules: TopicSettings) -> dict[str, Any]:
        """What a death says of its ordering key: that the next job need not wait for anybody."""
        return {"ordering": "skip"} if self.ordering_key and rules.ordering == "skip" else {}

    def prune(self, rules: TopicSettings, moment: Moment) -> Event | None:
        """The event of a final job going from the tables; None while it is to be kept."""
        keep_s = rules.keep_dead_s if self.status == Status.DEAD else rules.keep_done_s
        ended_s = self.ended_s(moment)
        if not keep_s or ended_s is None or ended_s < keep_s or self.holds_key(rules, moment):
            return None
        return Event("job.pruned", self.named() | {"reason": self.status})

    def lease(
        self, worker: str, lease_ms: int, locked_until: str, bucket_full_us: int | None = None
    ) -> Event:
        """The event of ``worker`` taking this pending job for ``lease_ms``; where its topic has a
        rate, with the instant at which the bucket is full again."""
        told = self.named() | {
            "worker": worker,
            "lease_token": self.lease_token + 1,
            "lease_ms": lease_ms,
            "locked_until": locked_until,
            "attempt_count": self.attempt_count,
            "rescue_count": self.rescue_count,
        }
        if bucket_full_us is not None:
            told["bucket_full_us"] = bucket_full_us
        return Event("job.leased", told)

    def lease_ended(self, lease_token: int, moment: Moment) -> str | None:
        """Why a lease is no longer its worker's, in words; None while it is."""
        if self.status != Status.LEASED:
            return f"lease {lease_token} is over: the job is {self.status}"
        if lease_token != self.lease_token:
            return f"lease {lease_token} is over: {self.locked_by} has lease {self.lease_token}"
        if self.is_late(moment):
            return f"lease {lease_token} ended at {self.locked_until}"
        return None

    def is_late(self, moment: Moment) -> bool:
        """Whether the lease of this leased job has run out by boot time."""
        return self.lease_boot_us is None or self.lease_boot_us <= moment.boot_us

    def extend(self, lease_ms: int, started_at: str | None, moment: Moment) -> Event:
        """The event of the holder keeping its lease for another ``lease_ms`` from now."""
        return Event(
            "job.extended",
            self.named()
            | {
                "worker": self.locked_by,
                "lease_token": self.lease_token,
                "lease_ms": lease_ms,
                "locked_until": moment.wall(lease_ms),
                "started_at": started_at,
            },
        )

    def release(self, reason: str) -> Event:
        """The event of the holder handing this job back on purpose: nothing is counted.

        A job that was to be cancelled is cancelled then.
        """
        held = self.named() | {"worker": self.locked_by, "lease_token": self.lease_token}
        if self.cancel_requested_at:
            return Event("job.cancelled", held | {"reason": reason})
        return Event("job.released", held | {"rescue_count": self.rescue_count, "reason": reason})

    def rescue(
        self, rules: TopicSettings, reason: str = "expired", wait: Mapping[str, Any] | None = None
    ) -> list[Event]:
        """The events that take this job from a holder whose lease is over, or who is dead.

        It is due again at once, or after ``wait`` (``delay_ms`` and ``next_attempt_at``). A job
        that outlived its worker more than ``max_rescues`` times goes to the dead letters.
        """
        held = self.named() | {"worker": self.locked_by, "lease_token": self.lease_token}
        if self.cancel_requested_at:
            return [Event("job.cancelled", held | {"reason": reason})]
        rescue_count = self.rescue_count + 1
        rescued = Event(
            "job.lease_expired",
            held
            | {
                "locked_until": self.locked_until,
                "rescue_count": rescue_count,
                "reason": "reboot" if self.lease_boot_us is None else reason,
                **(wait or {}),
            },
        )
        if rescue_count <= rules.max_rescues:
            return [rescued]
        died = {
            "attempt_count": self.attempt_count,
            "error_type": "KilledWorkers",
            "error": f"{rescue_count} leases ended with no word from their worker",
            "reason": "killed_workers",
        }
        return [rescued, Event("job.dead", held | died | self._skips(rules))]

    @property
    def timed_out_words(self) -> str:
        """The words of an attempt that ran too long."""
        return f"it ran longer than its timeout of {self.timeout_s or 0:g} s"

    def settle(
        self, outcome: Outcome, rules: TopicSettings, dice: float, moment: Moment
    ) -> list[Event]:
        """The events of a settle: its outcome, or its refusal when the lease is over.

        ``dice`` in [0, 1) spreads the delay of a retry.
        """
        refusal = self.lease_ended(outcome.lease_token, moment)
        if refusal:
            mine = self.status == Status.LEASED and outcome.lease_token == self.lease_token
            return [*(self.rescue(rules) if mine else []), outcome.refused(refusal)]
        return self.ended(outcome, rules, dice, moment)

    def ended(
        self, outcome: Outcome, rules: TopicSettings, dice: float, moment: Moment
    ) -> list[Event]:
        """The events of a run that ended while its lease was nobody else's."""
        if outcome.settle == "done":
            return [outcome.done(self.attempt_count + 1)]
        if self.cancel_requested_at and outcome.settle != "dead":
            return [outcome.cancelled("cancel_requested")]
        if outcome.settle == "snooze":
            return [outcome.snoozed(self.attempt_count, moment)]
        attempt_count = self.attempt_count + outcome.counted
        if self._may_retry(outcome, moment):
            delay_s = max(rules.backoff_s(max(attempt_count, 1), dice), outcome.after_s or 0)
            return [outcome.retried(attempt_count, round(delay_s * 1000), moment)]
        return [outcome.died(attempt_count, self._dead_reason(outcome), self._skips(rules))]

    def _may_retry(self, outcome: Outcome, moment: Moment) -> bool:
        left = not self._out_of_attempts(outcome) and not self.is_expired(moment)
        return outcome.settle == "retry" and left

    def _dead_reason(self, outcome: Outcome) -> str:
        if outcome.settle == "dead":
            return "permanent"
        return "out_of_attempts" if self._out_of_attempts(outcome) else "expired"

    def _out_of_attempts(self, outcome: Outcome) -> bool:
        return outcome.counted and self.attempt_count + 1 >= self.max_attempts


_PLACES = {name: place for place, name in enumerate(Job._fields)}
