"""The worker: threads that claim, run and settle until they are told to stop."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tallybook.book import Book, Held, Settled, Want
from tallybook.errors import BadInput, TallybookError
from tallybook.event import Event
from tallybook.ids import new_worker_id
from tallybook.job import Job, Status
from tallybook.payload import checked_text
from tallybook.worker.beat import Beat, Running
from tallybook.worker.handlers import Registered
from tallybook.worker.metrics import Counters
from tallybook.worker.run import run

log = logging.getLogger("tallybook.worker")
_IDLE_S = 0.05


class _HandBack(Exception):
    """A second signal came."""


class Worker:
    """Runs ``handlers`` on the jobs of a book. ``lease_s`` is how long a claim lasts unextended.

    ``runs_ended`` counts roughly (threads share it) for a progress line; ``interrupted`` says
    that Ctrl-C stopped it.
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
    ) -> None:
        self._path = path
        self._handlers = handlers
        self._threads = _checked_threads(threads)
        self._topics = _checked_topics(topics, handlers)
        self._lease_s = _checked_lease(lease_s)
        self._drain = drain
        self._name = checked_text("worker name", name)
        self._stop = threading.Event()
        self._running = Running()
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
            book.record(self._started(book))
            beat = self._beat(book)
            beat.start()
            try:
                self._work(book, beat)
            finally:
                beat.stop()
                reason = "failed" if self._failure else "drained" if self._drain else "stopped"
                book.record(Event("worker.stopped", {"worker": self._name, "reason": reason}))
        if self._failure:
            raise self._failure

    def stop(self) -> None:
        """Claim nothing more; end when the running handlers have settled."""
        self._stop.set()

    def stop_on_signals(self) -> None:
        """Let SIGTERM and SIGINT stop this worker; a second one hands its jobs back at once."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._signalled)

    def _signalled(self, number: int, _: object) -> None:
        if self._stop.is_set():
            raise _HandBack
        self.interrupted = number == signal.SIGINT
        self.stop()

    def _work(self, book: Book, beat: Beat) -> None:
        threads = [
            threading.Thread(
                target=self._thread, args=(book, beat), name=f"worker-{n}", daemon=True
            )
            for n in range(self._threads)
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except _HandBack:
            self._failure = TallybookError(self._hand_back(book))

    def _hand_back(self, book: Book) -> str:
        """Release what still runs; the threads end with the process."""
        released = book.release(self._running.all(), "worker stopped by a second signal")
        return f"stopped at once; {len(released)} running jobs were handed back"

    def _thread(self, book: Book, beat: Beat) -> None:
        try:
            job: Job | None = None
            while beat.alive and not (self._stop.is_set() and job is None):
                job = self._step(book, job)
                if job is None and not self._stop.is_set() and self._is_over(book):
                    return
            if job:
                book.release([Held(job.job_id, job.lease_token)], "its worker lost its heartbeat")
            if not beat.alive:
                raise TallybookError("the heartbeat failed five times in a row; nothing is claimed")
        except BaseException as error:  # noqa: BLE001 - run() raises it in the main thread
            self._failure = self._failure or error
            self._stop.set()

    def _step(self, book: Book, job: Job | None) -> Job | None:
        """Run ``job``, settle it and claim the next with the same sync; None where none is due."""
        found = self._run(book, job) if job else book.claim_many(self._want())
        return found[0] if found else None

    def _run(self, book: Book, job: Job) -> list[Job]:
        moment = book.moment()
        self._running.start(Held(job.job_id, job.lease_token, moment.wall()), moment.boot_us)
        try:
            handler = self._handlers[job.topic]
            outcome, puts = run(handler, job, book, self._counters, self._is_held(job))
            want = None if self._stop.is_set() else self._want()
            turn = book.turn([Settled(outcome, puts)], want)
        finally:
            self._running.end(job.job_id)
        for job_id, reason in turn.refused.items():
            log.warning("job %s: %s; this result is dropped", job_id, reason)
        event = "job.settle_refused" if turn.refused else turn.events[0].name
        self._counters.settled(job, outcome, event)
        self.runs_ended += 1
        return turn.jobs

    def _is_held(self, job: Job) -> Callable[[], bool]:
        return lambda: self._running.holds(job.job_id)

    def _want(self) -> Want:
        return Want(self._name or "", self._topics, self._lease_s)

    def _is_over(self, book: Book) -> bool:
        """Whether a draining worker has nothing left to wait for; else waits a little."""
        if self._drain and not _has_open_jobs(book, self._topics):
            return True
        self._stop.wait(_IDLE_S)
        return False

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
            lambda: Book.open(self._path),
            self._name or "",
            self._lease_s,
            self._about(book),
            self._running,
            self._counters,
        )


def _has_open_jobs(book: Book, topics: Sequence[str]) -> bool:
    return any(
        counts.get(Status.PENDING, 0) + counts.get(Status.LEASED, 0)
        for topic, counts in book.counts().items()
        if topic in topics
    )


def _checked_threads(threads: int) -> int:
    if not 1 <= threads <= 256:
        raise BadInput(f"--threads {threads}: use 1 to 256")
    return threads


def _checked_lease(lease_s: float) -> float:
    if not 0.3 <= lease_s <= 86400:
        raise BadInput(f"--lease {lease_s:g}: use 0.3 s to a day")
    return lease_s


def _checked_topics(topics: Sequence[str], handlers: Mapping[str, Registered]) -> Sequence[str]:
    for topic in topics:
        if topic not in handlers:
            known = ", ".join(sorted(handlers))
            raise BadInput(f"--topics {topic}: no handler for it; there are: {known}")
    return tuple(topics) or tuple(sorted(handlers))
