"""The heartbeat of a worker: leases extended, dead and silent workers' jobs rescued.

It runs in a thread of its own with a book of its own.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from tallybook.book import Book
from tallybook.book.ageing import Ageing
from tallybook.book.upkeep import Upkeep
from tallybook.errors import TallybookError
from tallybook.event import Event
from tallybook.worker.metrics import Counters, Recorder
from tallybook.worker.running import Running
from tallybook.worker.sign import Sign, bury_the_dead
from tallybook.worker.wake import Wake

log = logging.getLogger("tallybook.worker")
_LONGEST_BEAT_S = 1.0
_FAILED_BEATS = 5


class Beat:
    """The heart of one worker.

    ``alive`` is False after five beats in a row that failed, until one succeeds. ``each_time``
    is called at every beat, failed or not.
    """

    def __init__(
        self,
        book: Book,
        worker: str,
        lease_s: float,
        about: Mapping[str, Any],
        running: Running,
        counters: Counters,
        each_time: Callable[[Beat], None],
    ) -> None:
        self.alive = True
        self._book = book
        self._worker = worker
        self._lease_s = lease_s
        self._about = about
        self._running = running
        self._counters = counters
        self._each_time = each_time
        self._upkeep = Upkeep(book)
        self._ageing = Ageing(book)
        self._failed = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Place the heartbeat file, then begin to beat. Raises BadInput where the worker's name
        is that of a living one."""
        self._sign = Sign(self._book, self._worker, self._said())
        self._deaths = Wake(self._book.layout.heartbeats)
        self._recorder = Recorder(self._book, self._worker, self._counters)
        self._thread.start()

    def stop(self) -> bool:
        """Write the last metrics, take the heartbeat file away, end.

        False where handlers still run: the file stays, and the end of the process tells others
        that their jobs are free.
        """
        self._stop.set()
        self._deaths.rouse()
        self._thread.join()
        self._upkeep.wait()
        self._deaths.close()
        still = len(self._running.all())
        self._record(still)
        if not still:
            self._sign.remove()
        return not still

    def _run(self) -> None:
        pause_s = min(self._lease_s / 6, _LONGEST_BEAT_S)
        due_s = time.monotonic() + pause_s
        while not self._stop.is_set():
            told = self._deaths.wait(due_s - time.monotonic())
            if time.monotonic() >= due_s:
                self._try(self._beat)
                self._each_time(self)
                self._upkeep.rouse()
                due_s = time.monotonic() + pause_s
            elif told and not self._stop.is_set():
                self._bury_now()

    def _bury_now(self) -> None:
        try:
            self._bury()
        except (TallybookError, OSError) as error:
            log.warning("a dead worker's jobs wait for the next beat: %s", error)

    def _try(self, beat: Callable[[], None]) -> None:
        try:
            beat()
        except Exception as error:  # noqa: BLE001 - however a beat fails, it counts
            self._failed += 1
            if self._failed <= _FAILED_BEATS:
                log.warning("heartbeat %d of %d failed: %s", self._failed, _FAILED_BEATS, error)
        else:
            self._failed = 0
        self.alive = self._failed < _FAILED_BEATS

    def _beat(self) -> None:
        book = self._book
        self._sign.write(self._said())
        self._extend()
        self._bury()
        book.catch_up()
        self._count(book.rescue())
        self._ageing.step()
        interval_us = book.settings.worker.metrics_interval_s * 1_000_000
        if book.moment().boot_us - self._recorder.since.boot_us >= interval_us:
            self._recorder.record(len(self._running.all()))

    def _record(self, in_process: int) -> None:
        try:
            self._recorder.record(in_process)
        except OSError as error:
            log.warning("the last metrics are not written: %s", error)

    def _extend(self) -> None:
        now_us = self._book.moment().boot_us
        due = self._running.to_extend(now_us, int(self._lease_s / 3 * 1_000_000))
        if due:
            lost = self._book.extend(due, self._worker, self._lease_s)
            self._running.moved(due, lost, now_us)
            self._counters.add("refused_count", len(lost))

    def _bury(self) -> None:
        self._count(bury_the_dead(self._book))

    def _count(self, events: list[Event]) -> None:
        rescued = [event for event in events if event.name == "job.lease_expired"]
        timeouts = [event for event in rescued if event["reason"] == "expired"]
        self._counters.add("rescued_count", len(rescued))
        self._counters.add("lease_timeout_count", len(timeouts))

    def say_stopped(self, stopped: Mapping[str, Mapping[str, Any]]) -> None:
        """Leave word that this process ends to stop these runs."""
        self._sign.write(self._said() | {"stopped": stopped})

    def _said(self) -> dict[str, Any]:
        """What the heartbeat file says now."""
        moment = self._book.moment()
        return {
            **self._about,
            "boot_id": moment.boot_id,
            "boot_us": moment.boot_us,
            "beat_at": moment.wall(),
            "jobs": [
                {"job_id": h.job_id, "lease_token": h.lease_token, "started_at": h.started_at}
                for h in self._running.all()
            ],
        }
