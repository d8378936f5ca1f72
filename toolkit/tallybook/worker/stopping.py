"""Runs that are to stop: by a timeout or because their job is to be cancelled.

A run is told first (``ctx.cancelled``, a coroutine is cancelled). One that has not ended after the
grace cannot be stopped from inside: the process ends. What it leaves is in its heartbeat file, and
the leases last until it is dead, so that no job runs twice at once.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import Any

from tallybook.job import Job
from tallybook.outcome import Outcome

CANCELLED = "cancelled"
TIMED_OUT = "timed_out"
RESTART = 75


@dataclass
class Run:
    """A handler that runs, and why and when it was told to stop."""

    job: Job
    started_at: str
    began_us: int
    why: str = ""
    told_us: int = 0

    def told(self, boot_us: int) -> dict[str, Any]:
        """What whoever buries this process must know of the run."""
        duration_ms = (boot_us - self.began_us) / 1000
        return {"why": self.why, "started_at": self.started_at, "duration_ms": duration_ms}


@dataclass
class Stopping:
    """The runs of one worker; its threads and its heartbeat share it."""

    grace_s: float
    mutex: threading.Lock = field(default_factory=threading.Lock)
    runs: dict[str, Run] = field(default_factory=dict)

    def begin(self, job: Job, started_at: str, boot_us: int) -> None:
        """A handler begins at ``boot_us``."""
        with self.mutex:
            self.runs[job.job_id] = Run(job, started_at, boot_us)

    def end(self, job_id: str) -> None:
        """It has ended by itself."""
        with self.mutex:
            self.runs.pop(job_id, None)

    def why(self, job_id: str) -> str:
        """Why a run is to stop; empty where it is not."""
        with self.mutex:
            run = self.runs.get(job_id)
            return run.why if run else ""

    def overdue(self, cancelled: list[str], boot_us: int) -> list[Run]:
        """Tell the runs of ``cancelled`` jobs and those out of time; returns those that were told
        longer than the grace ago."""
        with self.mutex:
            for run in self.runs.values():
                if not run.why and (why := _why(run, cancelled, boot_us)):
                    run.why, run.told_us = why, boot_us
            told = [run for run in self.runs.values() if run.why]
            return [run for run in told if boot_us - run.told_us >= self.grace_s * 1_000_000]


def _why(run: Run, cancelled: list[str], boot_us: int) -> str:
    if run.job.job_id in cancelled:
        return CANCELLED
    timeout_s = run.job.timeout_s
    return TIMED_OUT if timeout_s and boot_us - run.began_us >= timeout_s * 1_000_000 else ""


def as_timed_out(outcome: Outcome, job: Job) -> Outcome:
    """The outcome of a run that ended because its time was over: a failed attempt, ``TimedOut``."""
    if outcome.settle != "retry":
        return outcome
    return replace(outcome, error_type="TimedOut", error=job.timed_out_words)
