"""Thresholds: from where on a runbook calls something a finding. A table of runbooks.toml each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ThroughputLatency:
    """Seconds that 95 of 100 jobs of the window may take; 0: however long."""

    wait_p95_s: float = 0.0
    run_p95_s: float = 0.0
    total_p95_s: float = 0.0


@dataclass(frozen=True, slots=True)
class StuckLeases:
    """``overdue_s``: how long after its end a lease may still be held before it is a problem."""

    overdue_s: float = 0.0


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """``jobs``: so many dead letters of a topic and error are borne. ``came_back``: a job that is
    dead again after so many requeues will not be helped by another one."""

    jobs: int = 0
    came_back: int = 1


@dataclass(frozen=True, slots=True)
class Backlog:
    """``drain_s``: longer than that, the pending jobs take too long. ``oldest_due_s``: longer than
    that, a job that is due has waited too long. 0: however long."""

    drain_s: float = 3600.0
    oldest_due_s: float = 900.0


@dataclass(frozen=True, slots=True)
class SettingsReview:
    """``over_share``: the share of runs, extensions or jobs beyond a setting that is borne."""

    over_share: float = 0.0


@dataclass(frozen=True, slots=True)
class LogHealth:
    """``clock_s``: the clock may be set by less than that. ``unkept_events``: so many events may
    follow the newest checkpoint. ``segment_mb``: so much may lie in a segment that is not
    compressed."""

    clock_s: float = 1.0
    unkept_events: int = 1_000_000
    segment_mb: float = 256.0


@dataclass(frozen=True, slots=True)
class WeeklyReview:
    """``slower``: times that p95 may grow by. ``more_failures``: times that the share of failed
    runs may grow by. ``fewer_jobs``: the share of the arrivals of before that is borne.
    ``least_jobs``: with fewer in either period, the periods are not compared."""

    slower: float = 1.5
    more_failures: float = 1.5
    fewer_jobs: float = 0.5
    least_jobs: int = 20


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The thresholds of all runbooks that have some, by their names."""

    throughput_latency: ThroughputLatency = ThroughputLatency()
    stuck_leases: StuckLeases = StuckLeases()
    dead_letters: DeadLetters = DeadLetters()
    backlog: Backlog = Backlog()
    settings_review: SettingsReview = SettingsReview()
    log_health: LogHealth = LogHealth()
    weekly_review: WeeklyReview = WeeklyReview()


DEFAULTS = Thresholds()
