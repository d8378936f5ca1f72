"""What is to stop: a worker, by a signal; its runs, by a timeout or because their job is to be
cancelled.

A run is told first (``ctx.cancelled``, a coroutine is cancelled). One that has not ended after the
grace cannot be stopped from inside: the process ends. What it leaves is in its heartbeat file, and
the leases last until it is dead, so that no job runs twice at once.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tallybook.event import Event
from tallybook.job import Job
from tallybook.outcome import Outcome

if TYPE_CHECKING:
    from tallybook.book import Book
    from tallybook.worker.beat import Beat
    from tallybook.worker.lane import Lane

log = logging.getLogger("tallybook.worker")
CANCELLED = "cancelled"
TIMED_OUT = "timed_out"
RESTART = 75
_FAILURE = 3
_THREAD_ENDED = 0
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class News:
    """What the main thread of a worker waits for: signals, and threads that end.

    Both are bytes in a pipe, and the signals are put there below Python: a wait for a lock could
    begin right after a signal came, and sleep through it.
    """

    def __init__(self) -> None:
        self._ear, self._mouth = os.pipe()
        os.set_blocking(self._mouth, False)
        self.interrupted = False

    def __del__(self) -> None:
        for fd in (self._ear, self._mouth):
            os.close(fd)

    def listen(self) -> None:
        """Take SIGTERM and SIGINT from now on; in the main thread."""
        signal.set_wakeup_fd(self._mouth, warn_on_full_buffer=False)
        for number in _SIGNALS:
            signal.signal(number, lambda *_: None)

    def thread_ended(self) -> None:
        """A thread has ended, however it did."""
        os.write(self._mouth, bytes([_THREAD_ENDED]))

    def signals(self, threads: int) -> Iterator[int]:
        """The signals that come until so many threads have ended."""
        while threads:
            (number,) = os.read(self._ear, 1)
            threads -= number == _THREAD_ENDED
            if number in _SIGNALS:
                self.interrupted = self.interrupted or number == signal.SIGINT
                yield number


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

    def ended(self, job: Job, outcome: Outcome) -> Outcome:
        """A handler has ended by itself; what becomes of its outcome where its time was over."""
        with self.mutex:
            run = self.runs.pop(job.job_id, None)
        return _as_timed_out(outcome, job) if run and run.why == TIMED_OUT else outcome

    def waits_for(self) -> str:
        """What a worker that stops waits for, in words; empty where no handler runs."""
        with self.mutex:
            runs = len(self.runs)
        jobs, them = ("1 running job", "it") if runs == 1 else (f"{runs} running jobs", "them")
        return f"waits for {jobs}; again to hand {them} back at once" if runs else ""

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


@dataclass
class HardEnd:
    """Ends the process of a worker where a run that was told to stop goes on."""

    runs: Stopping
    lanes: list[Lane]
    is_child: bool

    def look(self, beat: Beat, book: Book, worker: str, stop: Callable[[], None]) -> None:
        """Tell the runs that are to stop; where the grace of one is over, let ``stop`` keep the
        others from claiming, and end."""
        overdue = self.runs.overdue(book.to_cancel(worker), book.moment().boot_us)
        if overdue:
            stop()
            self._end(beat, book, worker, overdue)

    def _end(self, beat: Beat, book: Book, worker: str, overdue: list[Run]) -> None:
        """End the process: first settle what ended before such a run, and log the end."""
        hung = [run.job.job_id for run in overdue]
        ended = [one for lane in self.lanes if lane.now in hung for _, one in lane.ended]
        if ended:
            book.turn(ended)
        now_us, why = book.moment().boot_us, overdue[0].why
        book.record(Event("worker.stopped", {"worker": worker, "reason": why}))
        beat.say_stopped({run.job.job_id: run.told(now_us) for run in overdue})
        again = "its parent starts it again" if self.is_child else "start it again"
        log.error(
            "worker %s ends: job %s is %s and did not stop within %g s; %s",
            worker, ", ".join(hung), why, self.runs.grace_s, again,
        )  # fmt: skip
        os._exit(RESTART if self.is_child else _FAILURE)


def _why(run: Run, cancelled: list[str], boot_us: int) -> str:
    if run.job.job_id in cancelled:
        return CANCELLED
    timeout_s = run.job.timeout_s
    return TIMED_OUT if timeout_s and boot_us - run.began_us >= timeout_s * 1_000_000 else ""


def _as_timed_out(outcome: Outcome, job: Job) -> Outcome:
    """The outcome of a run that ended because its time was over: a failed attempt, ``TimedOut``."""
    if outcome.settle != "retry":
        return outcome
    return replace(outcome, error_type="TimedOut", error=job.timed_out_words)
