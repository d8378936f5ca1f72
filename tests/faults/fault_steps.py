"""Short words for what the fault tests do."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def started(code: str, *words: str | Path, **options: Any) -> subprocess.Popen[str]:
    """A Python process that runs ``code``."""
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


def until(condition: Callable[[], Any], wait_s: float = 30) -> None:
    """Wait for ``condition``; fail after ``wait_s`` seconds."""
    deadline = time.monotonic() + wait_s
    while not condition():
        assert time.monotonic() < deadline, "this did not come true in time"
        time.sleep(0.01)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file of this process grows beyond ``size`` bytes meanwhile."""
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
