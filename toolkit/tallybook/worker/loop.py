"""The worker: threads that claim, run and settle until they are told to stop."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tallybook import layout as layouts
from tallybook.book import Book, Held, Settled, Want
from tallybook.errors import NotNow, TallybookError
from tallybook.event import Event
from tallybook.ids import new_worker_id
from tallybook.job import Job
from tallybook.layout import FILE_MODE
from tallybook.worker import draining, notify, options
from tallybook.worker.beat import Beat
from tallybook.worker.handlers import Registered
from tallybook.worker.lane import Lane
from tallybook.worker.metrics import Counters
from tallybook.worker.patience import Patience
from tallybook.worker.run import run
from tallybook.worker.running import Running
from tallybook.worker.stopping import HardEnd, News, Stopping
from tallybook.worker.wake import Wake

log = logging.getLogger("tallybook.worker")
_LONGEST_IDLE_S = 1.0
_DRAIN_IDLE_S = 0.05


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
        self._threads = options.checked_threads(threads)
        self._topics = options.checked_topics(topics, handlers)
        self._lease_s = options.checked_lease(lease_s)
        self._drain = drain
        self._name = options.checked_name(name)
        self._parent_pid = parent_pid
        self._is_stopping = False  # a plain flag: a signal's handler may set it at any moment
        self._wake: Wake | None = None
        self._news = News()
        self._patience = Patience()
        self._stopping = Stopping(options.checked_grace(grace_s))
        self._lanes: list[Lane] = []
        self._hard_end = HardEnd(self._stopping, self._lanes, is_child=parent_pid is not None)
        self._running = Running(round(self._lease_s * 1_000_000))
        self._counters = Counters()
        self._failure: BaseException | None = None
        self.runs_ended = 0

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
        reason = "stopped" if self._is_stopping or not self._drain else "drained"
        reason = "failed" if self._failure else reason
        log.info("worker %s %s: %s", self._name, reason, self._counters.told)
        if beat.stop() and layouts.is_book(self._path):
            book.record(Event("worker.stopped", {"worker": self._name, "reason": reason}))

    def stop(self) -> None:
        """Claim nothing more; end when the running handlers have settled."""
        self._is_stopping = True
        if self._wake:
            self._wake.end()

    def stop_on_signals(self) -> None:
        """Let SIGTERM and SIGINT stop this worker; a second one hands its jobs back at once."""
        self._news.listen()

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C stopped it."""
        return self._news.interrupted

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
        for _ in self._news.signals(len(threads)):
            if self._is_stopping:
                self._failure = TallybookError(self._hand_back(book))
                return
            self.stop()
            if words := self._stopping.waits_for():
                log.warning("stopping: %s", words)

    def _hand_back(self, book: Book) -> str:
        """Release what still runs; the threads end with the process."""
        released = book.release(self._running.all(), "worker stopped by a second signal")
        self._running.clear()
        self._counters.released(len(released))
        jobs = "1 running job was" if len(released) == 1 else f"{len(released)} running jobs were"
        return f"stopped at once; {jobs} handed back"

    def _thread(self, book: Book, beat: Beat, wake: Wake) -> None:
        lane = Lane()
        self._lanes.append(lane)
        try:
            while lane.is_busy or not self._is_stopping:
                self._step(book, beat, wake, lane)
                if not (lane.is_busy or self._is_stopping) and self._is_over(book, wake):
                    return
        except BaseException as error:  # noqa: BLE001 - run() raises it in the main thread
            self._failure = self._failure or error
            self.stop()
        finally:
            self._news.thread_ended()

    def _step(self, book: Book, beat: Beat, wake: Wake, lane: Lane) -> None:
        """Run one job of the lane, settle what ended, or claim; a stopped worker runs and claims
        no more.

        A worker whose heart does not beat claims nothing.
        """
        if lane.jobs and self._is_stopping:
            self._give_back(book, lane)
        if lane.jobs:
            self._run(book, lane, lane.jobs.popleft())
        if lane.must_settle(time.monotonic()):
            self._settle(book, beat, lane)
        elif not lane.is_busy and beat.alive and not self._is_stopping:
            self._take(book, lane, self._claim(book, lane))
            if lane.jobs:
                wake.rouse()  # there may be more

    def _claim(self, book: Book, lane: Lane) -> list[Job]:
        try:
            return book.claim_many(self._want(lane))
        except NotNow as error:
            self._patience.again_later(error)
            return []

    def _take(self, book: Book, lane: Lane, jobs: list[Job]) -> None:
        lane.jobs.extend(jobs)
        for job in jobs:
            leased_us = (job.lease_boot_us or book.moment().boot_us) - self._running.lease_us
            self._running.start(Held(job.job_id, job.lease_token), leased_us)

    def _give_back(self, book: Book, lane: Lane) -> None:
        """Hand back the jobs that wait in memory: their worker stops."""
        held = [Held(job.job_id, job.lease_token) for job in lane.jobs]
        lane.jobs.clear()
        why = "its worker stopped before it began"
        self._counters.released(len(self._patience.until_now(lambda: book.release(held, why))))
        for lease in held:
            self._running.end(lease.job_id)

    def _settle(self, book: Book, beat: Beat, lane: Lane) -> None:
        """Settle what ended and claim what is next, with one sync."""
        settled = [one for _, one in lane.ended]
        claims = not lane.jobs and beat.alive and not self._is_stopping
        want = self._want(lane) if claims else None
        turn = self._patience.until_now(lambda: book.turn(settled, want))
        ends = turn.ends
        for job, one in lane.ended:
            self._running.end(job.job_id)
            self._counters.settled(job, one.outcome, ends[job.job_id])
        for job_id, reason in turn.refused.items():
            log.warning("job %s: %s; this result is dropped", job_id, reason)
        self.runs_ended += len(lane.ended)
        lane.ended.clear()
        self._take(book, lane, turn.jobs)

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
            held.started_at,
        )
        outcome = self._stopping.ended(job, outcome)
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
            if self._drain and draining.is_over(book, self._topics, self._patience):
                return True
            wake.wait(min(longest_s, book.next_due_s(self._topics) or longest_s))
        except NotNow as error:
            self._patience.again_later(error)
        return False

    def _stop_runs(self, beat: Beat, book: Book) -> None:
        """Tell the runs that are to stop; end this process where one of them does not."""
        try:
            self._hard_end.look(beat, book, self._name or "", self.stop)
        except TallybookError as error:
            self._patience.complain("runs that are to stop wait for the next beat: %s", error)

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
