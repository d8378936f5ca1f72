"""One schedule a book: a flock on the book's folder, which writes nothing there."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tallybook.errors import NotNow


@contextmanager
def held(book: Path, known: Mapping[str, Any]) -> Iterator[None]:
    """Hold the schedule of ``book`` in this block; the kernel lets go of it when we die.

    Raises NotNow that names the holder as ``known`` (pid, host, since) says, where another has it.
    """
    fd = os.open(book, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise NotNow(
            f"another schedule of {book} is at work: {_told(known)}; stop that one first"
        ) from None
    try:
        yield
    finally:
        os.close(fd)


def holder(since: str) -> dict[str, Any]:
    """This process, as the diary names it to others."""
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": since}


def _told(known: Mapping[str, Any]) -> str:
    if "pid" not in known:
        return "a process that writes under another --out"
    return f"process {known['pid']} on {known['host']} since {known['since']}"
