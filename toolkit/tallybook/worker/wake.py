"""Waiting for news without asking for it: inotify on Linux, a poll of 50 ms elsewhere.

A file that was open for writing and is closed is news. The kernel closes the heartbeat file of a
process that dies; who changes a book opens and closes its file ``wake``. Waiting costs nothing.
"""

from __future__ import annotations

import ctypes
import logging
import os
import select
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

log = logging.getLogger("tallybook.worker")
POLL_S = 0.05
POLL_VARIABLE = "TALLYBOOK_POLL"
_CLOSE_WRITE = 0x8  # IN_CLOSE_WRITE of inotify(7)
_ENOUGH = 65536


class Wake:
    """News of ``path``: of a folder's files, or of a file. Threads may share it.

    One thread at a time is woken by a piece of news; ``rouse`` wakes one more.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turn = threading.Lock()
        self._ear, self._mouth = os.pipe()
        for fd in (self._ear, self._mouth):
            os.set_blocking(fd, False)
        self._closed = False
        self._notify = _watcher()
        self._warned = False
        self.polls = not self._watch()

    def wait(self, timeout_s: float) -> bool:
        """Wait for news; False where none came in ``timeout_s`` seconds.

        Where nothing watches it returns True after 50 ms: there may be news.
        """
        deadline = time.monotonic() + timeout_s
        if not self._turn.acquire(timeout=max(timeout_s, 0)):
            return False
        try:
            return self._listen(deadline - time.monotonic())
        finally:
            self._turn.release()

    def rouse(self) -> None:
        """Wake one waiting thread, or the next that waits; safe in a signal handler."""
        with suppress(BlockingIOError):  # the pipe is full of calls already
            os.write(self._mouth, b"!")

    def end(self) -> None:
        """Nobody waits any more, now or later; safe in a signal handler."""
        self._closed = True
        self.rouse()

    def close(self) -> None:
        """Wake the waiting threads one by one, then let go of the descriptors."""
        self.end()
        with self._turn:
            fds = [fd for fd in (self._ear, self._mouth, self._notify) if fd >= 0]
            self._ear = self._mouth = self._notify = -1
        for fd in fds:
            os.close(fd)

    def _listen(self, timeout_s: float) -> bool:
        if self._closed:
            return True
        self.polls = not self._watch()  # it may be another file by now
        came = self._poll(min(timeout_s, POLL_S) if self.polls else timeout_s)
        if self._closed:
            self.rouse()
        return came or (self.polls and timeout_s >= POLL_S)

    def _poll(self, timeout_s: float) -> bool:
        poller = select.poll()
        for fd in (self._ear, self._notify):
            if fd >= 0:
                poller.register(fd, select.POLLIN)
        ready = poller.poll(max(timeout_s, 0) * 1000)
        for fd, _ in ready:
            with suppress(BlockingIOError):
                os.read(fd, _ENOUGH)
        return bool(ready)

    def _watch(self) -> bool:
        """Watch ``path``; watching the same one twice is one watch."""
        if self._notify < 0:
            return False
        name = os.fsencode(self._path)
        if _libc().inotify_add_watch(self._notify, name, _CLOSE_WRITE) >= 0:
            return True
        if not self._warned:
            reason = os.strerror(ctypes.get_errno())
            log.warning("%s cannot be watched: %s; it is polled", self._path, reason)
        self._warned = True
        return False


def _watcher() -> int:
    """A descriptor of inotify; -1 where there is none, or where TALLYBOOK_POLL says so."""
    if sys.platform != "linux" or os.environ.get(POLL_VARIABLE):
        return -1
    fd = int(_libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    if fd < 0:
        reason = os.strerror(ctypes.get_errno())
        log.warning("inotify does not work: %s; news are polled", reason)
    return fd


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
