"""Where a run is made, a kernel for those that do not care which one, and logs written by line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from runbook_notebooks import empty_book

from tallybook.runbook.kernels import Warm

for room in ("ops", "recover"):
    sys.path.insert(0, str(Path(__file__).parent.parent / room))
"""Logs written line by line are those of the tests of ops, worlds to repair those of recover."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a book of node ``node-7``; its name has braces in it."""
    here = tmp_path / "a {b} c"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.delenv("TALLYBOOK_BOOK", raising=False)
    empty_book(here / "book")
    return here


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    """A kernel for all runs that do not care which one they get."""
    with closing(Warm()) as kernel:
        yield kernel
