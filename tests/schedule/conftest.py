"""Time for the tests of the schedule."""

from __future__ import annotations

import pytest
from schedule_steps import MIDNIGHT

from tallybook.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    """Midnight."""
    return FakeClock(MIDNIGHT)
