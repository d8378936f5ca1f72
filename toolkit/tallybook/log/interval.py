"""durability = "interval": what was written is synced every n ms, in a thread of its own.

The thread starts with the first write and waits, at no cost, while nothing is unsynced. A power
cut can lose what the last interval acknowledged; a killed process loses nothing.
"""

from __future__ import annotations

import os
import threading
import weakref

from tallybook.log.durable import sync


class IntervalSync:
    """Syncs a descriptor at most ``interval_s`` after it was written to."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._mutex = threading.Lock()
        self._unsynced = threading.Event()
        self._over = threading.Event()
        self._fd = -1
        self._thread: threading.Thread | None = None
        _all.add(self)

    def wrote(self, fd: int) -> None:
        """Something unsynced was written to ``fd``, which stays open until ``sync`` is called."""
        self._fd = fd
        if not self._unsynced.is_set():
            self._unsynced.set()
        if self._thread is None:
            self._over.clear()
            self._thread = threading.Thread(target=self._run, name="log sync", daemon=True)
            self._thread.start()

    def sync(self) -> None:
        """Put what was written on disk now; the descriptor may be closed afterwards."""
        with self._mutex:
            if self._unsynced.is_set():
                self._unsynced.clear()
                sync(self._fd, "segment")

    def close(self) -> None:
        """Put what was written on disk and end the thread."""
        self.sync()
        self._over.set()
        self._unsynced.set()
        if self._thread:
            self._thread.join()
        self._thread = None
        self._unsynced.clear()

    def forget(self) -> None:
        """In a forked child: the thread and what it had to do stay with the parent."""
        self._thread = None
        self._mutex = threading.Lock()
        self._unsynced = threading.Event()

    def _run(self) -> None:
        while not self._over.is_set():  # a close may have come while this synced
            self._unsynced.wait()
            if self._over.wait(self._interval_s):
                return
            self.sync()


_all: weakref.WeakSet[IntervalSync] = weakref.WeakSet()


def _forget_in_child() -> None:
    for one in list(_all):
        one.forget()


os.register_at_fork(after_in_child=_forget_in_child)
