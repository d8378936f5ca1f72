"""How quickly the command line starts: ``tallybook --help`` beside a bare interpreter."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

from tests.benchmarks.measuring import Row, interleaved

ALLOWED_S = 0.3


def measure(full: bool) -> Iterator[Row]:
    """One row; the target is a bare interpreter and 0.3 s more."""
    got = interleaved({"ours": help_s, "bare": lambda: _seconds("-c", "")})
    target = got["bare"].median / (got["bare"].median + ALLOWED_S)
    yield Row.beside("tallybook --help", got["ours"], got["bare"], "bare interpreter", "s", target)


def help_s() -> float:
    """Seconds that ``tallybook --help`` takes."""
    return _seconds("-m", "tallybook", "--help")


def _seconds(*words: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    return time.perf_counter() - began
