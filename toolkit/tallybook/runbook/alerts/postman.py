"""Sends what is in the outbox, in a thread of its own beside the schedule."""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tallybook.clock import Clock
from tallybook.runbook import folder
from tallybook.runbook.alerts import targets
from tallybook.runbook.alerts.outbox import Message, Outbox, Send

_LOG = logging.getLogger(__name__)
_LAST_S = 20.0


@dataclass
class Postman:
    """Delivers until ``close``; what was not taken by then waits for the next one."""

    outbox: Outbox
    clock: Clock
    send: Send = targets.send
    _news: threading.Event = field(default_factory=threading.Event)
    _closing: bool = False

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._work, name="alerts", daemon=True)

    def start(self) -> None:
        """Begin to deliver."""
        self._thread.start()

    def wake(self) -> None:
        """There may be something to send."""
        self._news.set()

    def close(self) -> int:
        """Try once more what is due, for a bounded time; returns how many messages still wait."""
        self._closing = True
        self._news.set()
        self._thread.join(_LAST_S)
        return len(self.outbox.waiting())

    def round(self) -> float | None:
        """Try what is due; returns when something is due again, None where nothing waits."""
        now = self.clock.moment().now
        with _turn(self.outbox) as is_ours:
            if not is_ours:
                return 1.0
            for failed in self.outbox.deliver(now, self.send):
                _tell(failed)
        return self.outbox.next_s(now)

    def _work(self) -> None:
        while True:
            is_last = self._closing
            self._news.clear()
            wait_s = self._tried()
            if is_last:
                return
            if not self._closing:
                self._news.wait(wait_s)

    def _tried(self) -> float | None:
        try:
            return self.round()
        except OSError as error:
            _LOG.warning("alerts: %s: %s", error.filename or self.outbox.place, error.strerror)
            return 60.0


def _tell(failed: Message) -> None:
    """Say it at the first try that failed and at the last."""
    if failed.is_given_up:
        _LOG.warning("no alert to %s: given up, %s: %s", failed.target, failed.reason, failed.title)
    elif failed.tries == 1:
        _LOG.warning("no alert to %s yet: %s; it is tried again", failed.target, failed.reason)


@contextmanager
def _turn(outbox: Outbox) -> Iterator[bool]:
    """Whether no other process delivers from this outbox while the block runs."""
    folder.private_folder(outbox.place)
    fd = os.open(outbox.place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield _is_free(fd)
    finally:
        os.close(fd)


def _is_free(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
