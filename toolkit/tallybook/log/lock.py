"""The lock of a log: flock on its folder, inside a mutex of the process.

There is no lock file to delete or to find stale: the kernel frees the lock when its holder dies.
The mutex is needed because a second thread on the same descriptor would also get the flock.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
import weakref
from pathlib import Path

from tallybook.errors import BadInput, LockHeld, TallybookError

_mutexes: dict[tuple[int, int], threading.Lock] = {}
_open_locks: weakref.WeakSet[LogLock] = weakref.WeakSet()
_FIRST_PAUSE_S = 0.0002
_LONGEST_PAUSE_S = 0.005


class LogLock:
    """The right to append to the log in ``folder``, held inside ``with``; one for each book object.

    A class, for a queue takes it often: a generator as a context costs more than the flock.
    """

    def __init__(self, folder: Path, wait_s: float) -> None:
        if folder.is_symlink():
            raise BadInput(f"{folder} is a symbolic link; open the book where the log really lies")
        self._folder = folder
        self._wait_s = wait_s
        self._pid = os.getpid()
        self._fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        status = os.fstat(self._fd)
        self._mutex = _mutexes.setdefault((status.st_dev, status.st_ino), threading.Lock())
        _open_locks.add(self)

    def __enter__(self) -> None:
        """Hold the lock. Raises LockHeld, which names the holder, after ``wait_s`` seconds."""
        if os.getpid() != self._pid:
            raise TallybookError(
                f"the book at {self._folder.parent} was opened in process {self._pid}; "
                "open it anew in this process"
            )
        deadline = time.monotonic() + self._wait_s
        if not self._mutex.acquire(timeout=self._wait_s):
            raise self._refusal("another thread of this process")
        try:
            if not self._try():
                self._flock(deadline)
        except BaseException:
            self._mutex.release()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        finally:
            self._mutex.release()

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called, here or by a fork."""
        return self._fd < 0

    def close(self) -> None:
        """Let go of the folder; the lock is not held."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _flock(self, deadline: float) -> None:
        pause = _FIRST_PAUSE_S
        while not self._try():
            if time.monotonic() >= deadline:
                raise self._refusal(holder(self._folder))
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)

    def _try(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EINTR):
                return False
            raise
        return True

    def _refusal(self, who: str) -> LockHeld:
        return LockHeld(
            f"the log of {self._folder.parent} has been locked for {self._wait_s:g} s by {who}"
        )


def holder(folder: Path) -> str:
    """Who holds the lock of ``folder``, in words, with what to do about a stopped process."""
    pid = _holding_pid(folder)
    if pid is None:
        return "a process that cannot be seen from here"
    state = _process_state(pid)
    if state in ("T", "t"):
        return f"process {pid}, which is stopped: continue it (kill -CONT {pid}) or kill it"
    return f"process {pid}"


def stopped_holder(folder: Path) -> int | None:
    """The process that holds the lock of ``folder`` while it is stopped; None where none does.

    It needs no lock.
    """
    pid = _holding_pid(folder)
    return pid if pid is not None and _process_state(pid) in ("T", "t") else None


def _holding_pid(folder: Path) -> int | None:
    """The pid that /proc/locks gives for a flock on ``folder`` (Linux; elsewhere None)."""
    status = folder.stat()
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        rows = Path("/proc/locks").read_text("ascii").splitlines()
    except OSError:
        return None
    for row in rows:
        parts = row.split()
        if "FLOCK" in parts and "->" not in parts and place in parts:
            return int(parts[4])
    return None


def _process_state(pid: int) -> str:
    try:
        text = Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[0]


def _forget_in_child() -> None:
    """A forked child closes the descriptors that it inherited; it never unlocks them."""
    for lock in list(_open_locks):
        lock.close()


os.register_at_fork(after_in_child=_forget_in_child)
