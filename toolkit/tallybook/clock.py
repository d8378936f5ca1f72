"""Time: wall time for people, boot time for deadlines.

Boot time runs on while the machine sleeps and no wall-clock jump moves it.
It is comparable between all processes of one boot, which ``boot_id`` names.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol

_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Moment(NamedTuple):
    """One instant: ``now`` (UTC), ``boot_us`` (µs since boot) and the boot that it belongs to."""

    now: datetime
    boot_us: int
    boot_id: str

    def wall(self, after_ms: float = 0) -> str:
        """RFC 3339 text of this instant plus ``after_ms`` milliseconds."""
        return to_text(self.now + timedelta(milliseconds=after_ms) if after_ms else self.now)

    def boot(self, after_ms: float = 0) -> int:
        """Boot time in µs of this instant plus ``after_ms`` milliseconds."""
        return self.boot_us + int(after_ms * 1000)


class Clock(Protocol):
    """Where time comes from; tests bring their own."""

    def moment(self) -> Moment:
        """This instant."""
        ...


class SystemClock:
    """The clock of this machine."""

    def moment(self) -> Moment:
        """This instant by the system's wall clock and boot clock."""
        boot_us = time.clock_gettime_ns(_BOOT_CLOCK) // 1000
        return Moment(datetime.now(UTC), boot_us, boot_id())


@cache
def boot_id() -> str:
    """Name of this boot: Linux's random boot id, on macOS the boot session's."""
    if sys.platform == "darwin":
        import subprocess

        command = ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"]
        return subprocess.check_output(command, text=True).strip().lower()
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def boot_mark(boot_id: str) -> str:
    """The few letters by which a row names the boot in which something of it happened."""
    return boot_id[:8]


def to_text(moment: datetime) -> str:
    """RFC 3339 in UTC with six digits and ``Z``; sorts as text."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:26] + "Z"


def from_text(text: str) -> datetime:
    """The instant that ``to_text`` wrote, or any ISO 8601 text with a zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)
