"""The heartbeat file of a worker: its sign of life is the lock on it, not what stands in it.

It is made and locked under another name, then renamed in, and rewritten through the same
descriptor, so that a close happens only when the process ends. The kernel frees the lock then,
whatever the end was; no pid is asked, since pids come again and differ between containers.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from tallybook.book import Book, BookView
from tallybook.errors import BadInput
from tallybook.event import Event
from tallybook.layout import FILE_MODE, FOLDER_MODE

_LONGEST_NAME = 200
_DYING_S = 2.0
_PAUSE_S = 0.01
_open_signs: weakref.WeakSet[Sign] = weakref.WeakSet()


class Sign:
    """The heartbeat file of a worker of this process; while it is open, the worker lives."""

    def __init__(self, book: Book, worker: str, sign: Mapping[str, Any]) -> None:
        """Raises BadInput where a living worker has this name; a dead one is buried first."""
        self._book = book
        self._worker = worker
        self._path = path_of(book, worker)
        self._fd = -1
        _open_signs.add(self)
        self._place(sign)

    def write(self, sign: Mapping[str, Any]) -> None:
        """Say ``sign``, in place. A file that was taken away under us is made anew."""
        if _is(self._fd, self._path):
            _rewrite(self._fd, sign)
            return
        self.forget()
        self._place(sign)

    def remove(self) -> None:
        """The worker has ended: take the file away."""
        if _is(self._fd, self._path):
            self._path.unlink(missing_ok=True)
        self.forget()

    def forget(self) -> None:
        """Let go of the descriptor: in a forked child, where the parent lives on."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _place(self, sign: Mapping[str, Any]) -> None:
        self._path.parent.mkdir(FOLDER_MODE, exist_ok=True)
        self._free_name()
        aside = self._path.with_name(f".{self._path.name}.{os.getpid()}.new")
        aside.unlink(missing_ok=True)
        self._fd = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            _rewrite(self._fd, sign)
            with self._book.hold():
                self._require_free()
                aside.rename(self._path)
        except BaseException:
            aside.unlink(missing_ok=True)
            self.forget()
            raise

    def _free_name(self) -> None:
        """Bury who had this name; a process that is just dying gets a moment for it."""
        deadline = time.monotonic() + _DYING_S
        while self._path.exists() and not bury(self._book, self._path):
            if time.monotonic() > deadline:
                self._require_free()
            time.sleep(_PAUSE_S)

    def _require_free(self) -> None:
        if self._path.exists():
            pid = (_read(self._path) or {}).get("pid", "unknown")
            raise BadInput(
                f"worker name {self._worker!r} is that of process {pid}, which is alive; "
                "choose another with --name"
            )


def path_of(book: BookView, worker: str) -> Path:
    """Where the heartbeat file of ``worker`` is. Raises BadInput where the name is too long."""
    name = quote(worker, safe="")
    if len(name) > _LONGEST_NAME:
        raise BadInput(f"worker name {worker!r} is too long; use at most {_LONGEST_NAME} letters")
    return book.layout.heartbeats / f"{name}.json"


def signs(book: BookView) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The heartbeat files of a book; one that vanishes or is none is passed over."""
    for path in sorted(book.layout.heartbeats.glob("*.json")):
        sign = _read(path)
        if sign and isinstance(sign.get("pid"), int):
            yield path, sign


def is_dead(book: BookView, path: Path, sign: Mapping[str, Any]) -> bool:
    """Whether the worker of a heartbeat file is gone for sure: nobody holds the lock on it.

    Of a worker on another machine nothing is known from here: its locks are not seen.
    """
    elsewhere = sign.get("host") != book.node.host
    if elsewhere and sign.get("boot_id") != book.moment().boot_id:
        return False
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return _lock(fd, fcntl.LOCK_SH)
    finally:
        _unlock(fd)


def is_alive(book: BookView, worker: str) -> bool:
    """Whether a worker of that name lives, as far as can be seen from this host."""
    path = path_of(book, worker)
    sign = _read(path)
    return sign is not None and not is_dead(book, path, sign)


def bury(book: Book, path: Path) -> list[Event]:
    """Log the end of a dead worker, take its jobs and its file away; nothing where it lives.

    Its file is locked meanwhile, so that one process alone does it.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return []
    try:
        if not _lock(fd, fcntl.LOCK_EX) or not _is(fd, path):
            return []
        stopped = (_read(path) or {}).get("stopped")
        events = book.rescue_of(unquote(path.stem), stopped)
        with book.hold():
            path.unlink(missing_ok=True)
        return events
    finally:
        _unlock(fd)


def bury_the_dead(book: Book) -> list[Event]:
    """Bury every dead worker of the book; returns the events."""
    dead = [path for path, sign in signs(book) if is_dead(book, path, sign)]
    return [event for path in dead for event in bury(book, path)]


def _read(path: Path) -> dict[str, Any] | None:
    """What a heartbeat file says; read again where its owner was just rewriting it."""
    for _ in range(3):
        try:
            sign = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError:
            time.sleep(0.001)
            continue
        return sign if isinstance(sign, dict) else None
    return None


def _rewrite(fd: int, sign: Mapping[str, Any]) -> None:
    text = (json.dumps(sign, indent=1) + "\n").encode()
    os.pwrite(fd, text, 0)
    os.ftruncate(fd, len(text))


def _is(fd: int, path: Path) -> bool:
    """Whether ``fd`` is the file that stands at ``path``."""
    try:
        return fd >= 0 and os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False


def _lock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _unlock(fd: int) -> None:
    """Unlock, then close: a child that was forked meanwhile shares the lock."""
    fcntl.flock(fd, fcntl.LOCK_UN)
    os.close(fd)


def _forget_in_child() -> None:
    """The lock lives as long as any copy of its descriptor: a forked child closes its own."""
    for sign in list(_open_signs):
        sign.forget()


os.register_at_fork(after_in_child=_forget_in_child)
