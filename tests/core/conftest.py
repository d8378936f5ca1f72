"""Books for the core tests: a real folder, a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tallybook import Book
from tallybook.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def book(tmp_path: Path, clock: FakeClock) -> Iterator[Book]:
    with Book.open(tmp_path / "book", clock=clock) as opened:
        yield opened
