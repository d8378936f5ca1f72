"""Whose turn it is: one run of a runbook on a book at a time, in one folder of runs.

A turn is a flock on a file under ``locks/``. The kernel of the machine lets go of it when the
process of the run ends, however it ends; the file stays, and names who had the last turn.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
            told = _holder(fd)
            who = ", ".join(f"{name} {told[name]}" for name in ("run", "pid") if name in told)
            raise NotNow(
                f"runbook {self.runbook}: a run of it on {self.subject} is under way since "
                f"{told.get('started_at', 'just now')} ({who or 'it just began'}); wait until it "
                "has ended, or end that process"
            ) from None


def _holder(fd: int) -> dict[str, Any]:
    """What the locked file says; empty while its holder has not written it yet."""
    try:
        told = json.loads(os.pread(fd, 1 << 16, 0))
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
