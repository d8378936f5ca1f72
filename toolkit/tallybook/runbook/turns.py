"""Whose turn it is: one run of a runbook on a book at a time.

A turn is a flock on a file under ``locks/``, which names who has it, or had it last. Runs with
another folder of runs see no such file, and nothing may be written into the book: so a turn is
also a name on this machine, an abstract socket made of the runbook and the folder of the book.
The kernel of the machine lets go of both when the process of the run ends, however it ends.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tallybook import layout
from tallybook.errors import NotNow
from tallybook.layout import FILE_MODE, FOLDER_MODE

_FOLDER = "locks"


@dataclass(frozen=True, slots=True)
class Turn:
    """What is done one at a time: ``subject`` is the book, or the notebook that takes none."""

    out: Path
    runbook: str
    subject: str

    @property
    def path(self) -> Path:
        """The file that is locked."""
        told = f"{self.runbook}\n{self.subject}".encode("utf-8", "surrogateescape")
        return self.out / _FOLDER / f"{hashlib.blake2b(told, digest_size=8).hexdigest()}.json"

    @contextmanager
    def taken(self, holder: Mapping[str, Any]) -> Iterator[None]:
        """Have the turn in this block, as ``holder`` (run, pid, started_at).

        Raises NotNow that names who has it, where somebody has.
        """
        self.path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            self._lock(fd)
            with self._named():
                os.ftruncate(fd, 0)
                os.pwrite(fd, json.dumps(dict(holder)).encode() + b"\n", 0)
                yield
        finally:
            os.close(fd)

    def has(self, run: str) -> bool:
        """Whether the process of ``run`` has this turn, and so is alive."""
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _holder(fd).get("run") == run
        finally:
            os.close(fd)
        return False

    def _lock(self, fd: int) -> None:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._not_now(_holder(fd)) from None

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Have the name of this turn on the machine, where it is about a book that can change."""
        name = self._name()
        if name is None:
            yield
            return
        with socket.socket(socket.AF_UNIX) as held:
            try:
                held.bind(name)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                raise self._not_now(_listener(name), " with another --out") from None
            held.listen()
            yield

    def _name(self) -> bytes | None:
        """The same for each path to the folder of a book; None for a bucket, for a runbook that
        takes no book and for the sample, which many look at at once."""
        book, sample = Path(self.subject), layout.carried("data-samples") / "book"
        if not book.is_dir() or (sample.is_dir() and book.samefile(sample)):
            return None
        place = book.stat()
        told = f"{self.runbook}\n{place.st_dev}:{place.st_ino}".encode()
        return b"\0tallybook-run-" + hashlib.blake2b(told, digest_size=16).hexdigest().encode()

    def _not_now(self, told: Mapping[str, Any], how: str = "") -> NotNow:
        who = ", ".join(f"{name} {told[name]}" for name in ("run", "pid") if name in told)
        since = f" since {told['started_at']}" if "started_at" in told else ""
        return NotNow(
            f"runbook {self.runbook}: a run of it on {self.subject} is under way{how}{since} "
            f"({who or 'it just began'}); wait until it has ended, or end that process"
        )


def _listener(name: bytes) -> dict[str, int]:
    """The process that has a name on this machine; empty where that cannot be seen from here."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.setblocking(False)
        try:
            asking.connect(name)
        except OSError:
            return {}
        told = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid = struct.unpack("3i", told)[0]
    return {"pid": pid} if pid else {}


def _holder(fd: int) -> dict[str, Any]:
    """What the locked file says; empty while its holder has not written it yet."""
    try:
        told = json.loads(os.pread(fd, 1 << 16, 0))
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
