"""The worker: threads that claim, run and settle until they are told to stop."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from tallybook import layout as layouts
from tallybook.book import Book, Held, Settled, Want
from tallybook.errors import BadInput, NotNow, TallybookError
from tallybook.event import Event
from tallybook.ids import new_worker_id
from tallybook.job import Job, Status
from tallybook.layout import FILE_MODE
from tallybook.payload import checked_text, visible
from tallybook.worker import notify
from tallybook.worker.beat import Beat
from tallybook.worker.handlers import Registered
from tallybook.worker.lane import Lane
from tallybook.worker.metrics import Counters
from tallybook.worker.run import run
from tallybook.worker.running import Running
from tallybook.worker.stopping import RESTART, TIMED_OUT, Run, Stopping, as_timed_out
from tallybook.worker.wake import Wake

log = logging.getLogger("tallybook.worker")
_LONGEST_IDLE_S = 1.0
_DRAIN_IDLE_S = 0.05
_AGAIN_S = 1.0
_COMPLAIN_S = 30.0
_FAILURE = 3
_Answer = TypeVar("_Answer")


class _HandBack(Exception):
    """A second signal came."""


class Worker:
    """Runs ``handlers`` on the jobs of a book. ``lease_s`` is how long a claim lasts unextended.

    ``runs_ended`` counts roughly (threads share it) for a progress line; ``interrupted`` says
    that Ctrl-C stopped it. It also stops once ``parent_pid``, where given, is not its parent.
    """

    def __init__(
        self,
        path: Path,
        handlers: Mapping[str, Registered],
        *,
        threads: int = 4,
        topics: Sequence[str] = (),
        lease_s: float = 60.0,
        drain: bool = False,
        name: str | None = None,
        parent_pid: int | None = None,
        grace_s: float = 30.0,
    ) -> None:
        self._path = path
        self._handlers = handlers
        self._threads = _checked_threads(threads)
        self._topics = _checked_topics(topics, handlers)
        self._lease_s = _checked_lease(lease_s)
        self._drain = drain
        self._name = _checked_name(name)
        self._parent_pid = parent_pid
        self._stop = threading.Event()
        self._wake: Wake | None = None
        self._is_ending = False
        self._complained_s: dict[str, float] = {}
        self._stopping = Stopping(_checked_grace(grace_s))
        self._lanes: list[Lane] = []
        self._running = Running(round(self._lease_s * 1_000_000))
        self._counters = Counters()
        self._failure: BaseException | None = None
        self.runs_ended = 0
        self.interrupted = False

    def run(self) -> None:
        """Work until stopped or, with ``drain``, until nothing is pending or leased.

        Raises what stopped a thread; jobs of handlers that still run then are rescued later.
        """
        with Book.open(self._path) as book:
            self._name = self._name or new_worker_id(book.node.host)
            with Book.open(self._path) as own:
                beat = self._beat(own)
                beat.start()
                try:
                    book.record(self._started(book))
                    self._work(book, beat)
                finally:
                    self._end(book, beat)
        if self._failure:
            raise self._failure

    def _end(self, book: Book, beat: Beat) -> None:
        self._is_ending = True
        if beat.stop() and layouts.is_book(self._path):
            reason = "failed" if self._failure else "drained" if self._drain else "stopped"
            book.record(Event("worker.stopped", {"worker": self._name, "reason": reason}))

    def stop(self) -> None:
        """Claim nothing more; end when the running handlers have settled."""
        self._stop.set()
        if self._wake:
            self._wake.end()

    def stop_on_signals(self) -> None:
        """Let SIGTERM and SIGINT stop this worker; a second one hands its jobs back at once."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._signalled)

    def _signalled(self, number: int, _: object) -> None:
        if self._is_ending:
            return
        if self._stop.is_set():
            self._is_ending = True
            raise _HandBack
        self.interrupted = number == signal.SIGINT
        self.stop()

    def _work(self, book: Book, beat: Beat) -> None:
        book.layout.wake.touch(FILE_MODE)
        self._wake = wake = Wake(book.layout.wake)
        threads = [
            threading.Thread(
                target=self._thread, args=(book, beat, wake), name=f"worker-{n}", daemon=True
            )
            for n in range(self._threads)
        ]
        for thread in threads:
            thread.start()
        notify.notify(notify.READY)
        try:
            for thread in threads:
                thread.join()
        except _HandBack:
            self._failure = TallybookError(self._hand_back(book))

    def _hand_back(self, book: Book) -> str:
        """Release what still runs; the threads end with the process."""
        released = book.release(self._running.all(), "worker stopped by a second signal")
        self._running.clear()
        return f"stopped at once; {len(released)} running jobs were handed back"

    def _thread(self, book: Book, beat: Beat, wake: Wake) -> None:
        lane = Lane()
        self._lanes.append(lane)
        try:
            while lane.is_busy or not self._stop.is_set():
                self._step(book, beat, wake, lane)
                if not (lane.is_busy or self._stop.is_set()) and self._is_over(book, wake):
                    return
        except BaseException as error:  # noqa: BLE001 - run() raises it in the main thread
            self._failure = self._failure or error
            self.stop()

    def _step(self, book: Book, beat: Beat, wake: Wake, lane: Lane) -> None:
        """Run one job of the lane, settle what ended, or claim; a stopped worker runs no more.

        A worker whose heart does not beat claims nothing.
        """
        if lane.jobs and self._stop.is_set():
            self._give_back(book, lane)
        if lane.jobs:
            self._run(book, lane, lane.jobs.popleft())
        if lane.must_settle(time.monotonic()):
            self._settle(book, beat, lane)
        elif not lane.is_busy and beat.alive:
            self._take(book, lane, self._claim(book, lane))
            if lane.jobs:
                wake.rouse()  # there may be more

    def _claim(self, book: Book, lane: Lane) -> list[Job]:
        try:
            return book.claim_many(self._want(lane))
        except NotNow as error:
            self._again_later(error)
            return []

    def _take(self, book: Book, lane: Lane, jobs: list[Job]) -> None:
        lane.jobs.extend(jobs)
        for job in jobs:
            self._running.start(Held(job.job_id, job.lease_token), self._leased_us(book, job))

    def _leased_us(self, book: Book, job: Job) -> int:
        return (job.lease_boot_us or book.moment().boot_us) - self._running.lease_us

    def _give_back(self, book: Book, lane: Lane) -> None:
        """Hand back the jobs that wait in memory: their worker stops."""
        held = [Held(job.job_id, job.lease_token) for job in lane.jobs]
        lane.jobs.clear()
        self._until_now(lambda: book.release(held, "its worker stopped before it began"))
        for lease in held:
            self._running.end(lease.job_id)

    def _settle(self, book: Book, beat: Beat, lane: Lane) -> None:
        """Settle what ended and claim what is next, with one sync."""
        settled = [one for _, one in lane.ended]
        claims = not lane.jobs and beat.alive and not self._stop.is_set()
        want = self._want(lane) if claims else None
        turn = self._until_now(lambda: book.turn(settled, want))
        ends = turn.ends
        for job, one in lane.ended:
            self._running.end(job.job_id)
            self._counters.settled(job, one.outcome, ends[job.job_id])
        for job_id, reason in turn.refused.items():
            log.warning("job %s: %s; this result is dropped", job_id, reason)
        self.runs_ended += len(lane.ended)
        lane.ended.clear()
        self._take(book, lane, turn.jobs)

    def _until_now(self, change: Callable[[], _Answer]) -> _Answer:
        """Make a change; where something passing is in the way, wait and try again."""
        while True:
            try:
                return change()
            except NotNow as error:
                self._again_later(error)

    def _again_later(self, error: NotNow) -> None:
        self._complain("%s; trying again", error)
        time.sleep(_AGAIN_S)

    def _complain(self, words: str, error: TallybookError) -> None:
        """Tell what is in the way, each kind twice a minute at most."""
        now_s = time.monotonic()
        if now_s - self._complained_s.get(words, -_COMPLAIN_S) >= _COMPLAIN_S:
            self._complained_s[words] = now_s
            log.warning(words, error)

    def _run(self, book: Book, lane: Lane, job: Job) -> None:
        moment = book.moment()
        held = Held(job.job_id, job.lease_token, moment.wall())
        max_run_s = book.settings.topic(job.topic).max_run_s
        self._running.begin(held, moment.boot(max_run_s * 1000) if max_run_s else None)
        lane.now = job.job_id
        self._stopping.begin(job, held.started_at or "", moment.boot_us)
        is_held = self._is_held(book, job)
        outcome, puts = run(
            self._handlers[job.topic],
            job,
            book,
            self._counters,
            is_held,
            lambda until_us: self._running.extended(job.job_id, until_us),
        )
        if self._stopping.why(job.job_id) == TIMED_OUT:
            outcome = as_timed_out(outcome, job)
        self._stopping.end(job.job_id)
        lane.end(job, Settled(outcome, puts), time.monotonic())

    def _is_held(self, book: Book, job: Job) -> Callable[[], bool]:
        def is_held() -> bool:
            now_us = book.moment().boot_us
            holds = self._running.holds(job.job_id, job.lease_token, now_us)
            return holds and not self._stopping.why(job.job_id)

        return is_held

    def _want(self, lane: Lane) -> Want:
        return Want(self._name or "", self._topics, self._lease_s, lane.limit)

    def _is_over(self, book: Book, wake: Wake) -> bool:
        """Whether a draining worker has nothing left to wait for; else waits for news."""
        longest_s = _DRAIN_IDLE_S if self._drain else _LONGEST_IDLE_S
        try:
            if self._drain and not _has_open_jobs(book, self._topics):
                return True
            wake.wait(min(longest_s, book.next_due_s(self._topics) or longest_s))
        except NotNow as error:
            self._again_later(error)
        return False

    def _stop_runs(self, beat: Beat, book: Book) -> None:
        """Tell the runs that are to stop; end this process where one of them does not."""
        now_us = book.moment().boot_us
        try:
            overdue = self._stopping.overdue(book.to_cancel(self._name or ""), now_us)
            if overdue:
                self._end_hard(beat, book, overdue)
        except TallybookError as error:
            self._complain("runs that are to stop wait for the next beat: %s", error)

    def _end_hard(self, beat: Beat, book: Book, overdue: list[Run]) -> None:
        """End the process: first settle what ended before such a run, and log the end."""
        self._stop.set()
        hung = [run.job.job_id for run in overdue]
        ended = [one for lane in self._lanes if lane.now in hung for _, one in lane.ended]
        if ended:
            book.turn(ended)
        now_us, why = book.moment().boot_us, overdue[0].why
        book.record(Event("worker.stopped", {"worker": self._name, "reason": why}))
        beat.say_stopped({run.job.job_id: run.told(now_us) for run in overdue})
        again = "its parent starts it again" if self._parent_pid else "start it again"
        log.error(
            "worker %s ends: job %s is %s and did not stop within %g s; %s",
            self._name, ", ".join(hung), why, self._stopping.grace_s, again,
        )  # fmt: skip
        os._exit(RESTART if self._parent_pid else _FAILURE)

    def _each_beat(self, beat: Beat, book: Book) -> None:
        self._stop_runs(beat, book)
        notify.notify(notify.WATCHDOG)
        if not layouts.is_book(self._path):
            gone = TallybookError(f"{self._path} is gone: the book was removed while it was worked")
            self._failure = self._failure or gone
            self.stop()
        if self._parent_pid and os.getppid() != self._parent_pid:
            log.warning("process %d, the parent, is gone: this worker stops", self._parent_pid)
            self.stop()

    def _about(self, book: Book) -> dict[str, object]:
        return {
            "worker": self._name,
            "pid": os.getpid(),
            "host": book.node.host,
            "topics": list(self._topics),
            "threads": self._threads,
        }

    def _started(self, book: Book) -> Event:
        lease = {"lease_ms": round(self._lease_s * 1000)}
        return Event("worker.started", self._about(book) | lease)

    def _beat(self, book: Book) -> Beat:
        return Beat(
            book,
            self._name or "",
            self._lease_s,
            self._about(book),
            self._running,
            self._counters,
            lambda beat: self._each_beat(beat, book),
        )


def _has_open_jobs(book: Book, topics: Sequence[str]) -> bool:
    return any(
        counts.get(Status.PENDING, 0) + counts.get(Status.LEASED, 0)
        for topic, counts in book.counts().items()
        if topic in topics
    )


def _checked_name(name: str | None) -> str | None:
    if name is not None and visible(name) != name:
        raise BadInput(f"--name {visible(name)}: use no control characters")
    return checked_text("worker name", name)


def _checked_threads(threads: int) -> int:
    if not 1 <= threads <= 256:
        raise BadInput(f"--threads {threads}: use 1 to 256")
    return threads


def _checked_lease(lease_s: float) -> float:
    if not 0.3 <= lease_s <= 86400:
        raise BadInput(f"--lease {lease_s:g}: use 0.3 s to a day")
    return lease_s


def _checked_grace(grace_s: float) -> float:
    if not 0 <= grace_s <= 86400:
        raise BadInput(f"--grace {grace_s:g}: use 0 s to a day")
    return grace_s


def _checked_topics(topics: Sequence[str], handlers: Mapping[str, Registered]) -> Sequence[str]:
    for topic in topics:
        if topic not in handlers:
            known = ", ".join(sorted(handlers))
            raise BadInput(f"--topics {topic}: no handler for it; there are: {known}")
    return tuple(topics) or tuple(sorted(handlers))
