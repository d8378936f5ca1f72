"""The heartbeat of a worker: leases extended, silent workers' jobs rescued, signs of life written.

It runs in a thread of its own with a book of its own.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tallybook.book import Book, BookView, Held
from tallybook.errors import TallybookError
from tallybook.event import Event
from tallybook.layout import FILE_MODE
from tallybook.worker.metrics import Counters, Recorder

log = logging.getLogger("tallybook.worker")
_LONGEST_BEAT_S = 1.0
_FAILED_BEATS = 5


@dataclass
class Running:
    """The jobs whose handlers run now; shared by the threads of a worker."""

    mutex: threading.Lock = field(default_factory=threading.Lock)
    leases: dict[str, tuple[Held, int]] = field(default_factory=dict)

    def start(self, held: Held, boot_us: int) -> None:
        """A handler begins; its lease was last moved at ``boot_us``."""
        with self.mutex:
            self.leases[held.job_id] = (held, boot_us)

    def end(self, job_id: str) -> None:
        """A handler has ended."""
        with self.mutex:
            self.leases.pop(job_id, None)

    def older_than(self, boot_us: int) -> list[Held]:
        """The leases that were last moved before ``boot_us``."""
        with self.mutex:
            return [held for held, moved_us in self.leases.values() if moved_us <= boot_us]

    def moved(self, leases: list[Held], lost: list[Held], boot_us: int) -> None:
        """These leases were extended at ``boot_us``, but for those that are ``lost``."""
        with self.mutex:
            for held in leases:
                if held.job_id in self.leases:
                    self.leases[held.job_id] = (held, boot_us)
            for held in lost:
                self.leases.pop(held.job_id, None)

    def holds(self, job_id: str) -> bool:
        """Whether the lease of a running job is still held, as far as is known."""
        with self.mutex:
            return job_id in self.leases

    def all(self) -> list[Held]:
        """The leases held now."""
        with self.mutex:
            return [held for held, _ in self.leases.values()]


class Beat:
    """The heart of one worker. ``alive`` turns False after five beats in a row that failed."""

    def __init__(
        self,
        open_book: Callable[[], Book],
        worker: str,
        lease_s: float,
        about: Mapping[str, Any],
        running: Running,
        counters: Counters,
    ) -> None:
        self.alive = True
        self._open_book = open_book
        self._worker = worker
        self._lease_s = lease_s
        self._about = about
        self._running = running
        self._counters = counters
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def stop(self) -> None:
        """Write the last metrics, take the heartbeat file away, end."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with self._open_book() as book:
            recorder = Recorder(book, self._worker, self._counters)
            try:
                self._beat_on(book, recorder)
            finally:
                recorder.record(len(self._running.all()))
                self._path(book).unlink(missing_ok=True)

    def _beat_on(self, book: Book, recorder: Recorder) -> None:
        pause = min(self._lease_s / 6, _LONGEST_BEAT_S)
        interval_us = book.settings.worker.metrics_interval_s * 1_000_000
        recorded_us = book.moment().boot_us
        failed = 0
        self._sign(book)
        while not self._stop.wait(pause):
            try:
                self._beat(book)
                if book.moment().boot_us - recorded_us >= interval_us:
                    recorder.record(len(self._running.all()))
                    recorded_us = book.moment().boot_us
                failed = 0
            except (TallybookError, OSError) as error:
                failed += 1
                log.warning("heartbeat %d of %d failed: %s", failed, _FAILED_BEATS, error)
                self.alive = failed < _FAILED_BEATS

    def _beat(self, book: Book) -> None:
        self._sign(book)
        _bury_the_dead(book)
        now_us = book.moment().boot_us
        due = self._running.older_than(now_us - int(self._lease_s / 3 * 1_000_000))
        if due:
            lost = book.extend(due, self._worker, self._lease_s)
            self._running.moved(due, lost, now_us)
            self._counters.add("refused_count", len(lost))
        rescued = [e for e in book.rescue() if e.name == "job.lease_expired"]
        timeouts = [event for event in rescued if event["reason"] == "expired"]
        self._counters.add("rescued_count", len(rescued))
        self._counters.add("lease_timeout_count", len(timeouts))

    def _sign(self, book: Book) -> None:
        """Write the heartbeat file, whole by rename."""
        moment = book.moment()
        sign = {
            **self._about,
            "boot_id": moment.boot_id,
            "boot_us": moment.boot_us,
            "beat_at": moment.wall(),
            "jobs": [
                {"job_id": h.job_id, "lease_token": h.lease_token, "started_at": h.started_at}
                for h in self._running.all()
            ],
        }
        path = self._path(book)
        aside = path.with_suffix(".new")
        aside.write_text(json.dumps(sign, indent=1) + "\n", "utf-8")
        aside.chmod(FILE_MODE)
        aside.replace(path)

    def _path(self, book: Book) -> Path:
        return book.layout.heartbeats / f"{self._worker}.json"


def signs(book: BookView) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The heartbeat files of a book; one that vanishes or is none is passed over."""
    for path in sorted(book.layout.heartbeats.glob("*.json")):
        try:
            sign = json.loads(path.read_bytes())
        except (FileNotFoundError, ValueError):
            continue
        if isinstance(sign, dict) and isinstance(sign.get("pid"), int):
            yield path, sign


def is_dead(book: BookView, sign: Mapping[str, Any]) -> bool:
    """Whether the worker of a heartbeat file is gone for sure: another boot, or no such process.

    Of a worker on another host nothing is known from here.
    """
    if sign.get("host") != book.node.host:
        return False
    if sign.get("boot_id") != book.moment().boot_id:
        return True
    try:
        os.kill(sign["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _bury_the_dead(book: Book) -> None:
    """Take away the heartbeat files of dead workers and log their end, each once."""
    for path, sign in signs(book):
        if is_dead(book, sign):
            try:
                path.unlink()
            except FileNotFoundError:
                continue
            book.record(Event("worker.stopped", {"worker": sign.get("worker"), "reason": "died"}))
