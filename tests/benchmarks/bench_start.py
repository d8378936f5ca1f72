"""How quickly the command line starts: ``tallybook --help`` beside a bare interpreter."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

from tests.benchmarks.measuring import Row, beside

ALLOWED_S = 0.3


def measure(full: bool) -> Iterator[Row]:
    """One row; the target is a bare interpreter and 0.3 s more."""
    ours, bare = beside(lambda: _seconds("-m", "tallybook", "--help"), lambda: _seconds("-c", ""))
    yield Row("tallybook --help", ours, bare, "bare interpreter", "s", bare / (bare + ALLOWED_S))


def _seconds(*words: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    return time.perf_counter() - began
