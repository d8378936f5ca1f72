"""For tests of programs that use tallybook: a clock that stands still until it is told.

clock = FakeClock()
book = Book.open(tmp_path / "book", clock=clock)
job = book.claim("me", lease_s=60)
clock.advance(61)                       # the lease is over
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tallybook.clock import Moment

_START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class FakeClock:
    """Wall and boot time that move only through ``advance``, ``jump`` and ``reboot``."""

    def __init__(self, now: datetime = _START) -> None:
        self._moment = Moment(now, 1_000_000_000, "boot-1")
        self._boots = 1

    def moment(self) -> Moment:
        """This instant."""
        return self._moment

    def advance(self, seconds: float) -> None:
        """Let time pass: wall time and boot time alike."""
        us = round(seconds * 1_000_000)
        now = self._moment.now + timedelta(microseconds=us)
        self._moment = Moment(now, self._moment.boot_us + us, self._moment.boot_id)

    def jump(self, seconds: float) -> None:
        """Move the wall clock alone, as an operator or NTP does."""
        now = self._moment.now + timedelta(seconds=seconds)
        self._moment = Moment(now, self._moment.boot_us, self._moment.boot_id)

    def reboot(self, seconds: float = 30) -> None:
        """Start the machine anew; it was off for ``seconds``."""
        self._boots += 1
        now = self._moment.now + timedelta(seconds=seconds)
        self._moment = Moment(now, 1_000_000, f"boot-{self._boots}")
