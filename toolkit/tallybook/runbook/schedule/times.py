"""When an entry is due: a cron expression on the wall clock of a named zone, as instants in UTC.

cronsim does the arithmetic of the expression, on wall times without a zone. What a change of the
clock means is decided here, because the libraries disagree on it (docs/decisions):

- Hours are named (``30 2 * * *``, ``0 */2 * * *``): due when the wall clock of that day comes to
  the time. A time that the clock leaps over is due at the end of the leap, once however many it
  leaps over; a time that it shows twice is due the first time only.
- Every hour (``15 * * * *``, ``*/5 * * * *``): due whenever the wall clock shows such a minute:
  in 23 hours of the short day, and in 25 of the long one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from cronsim import CronSim, CronSimError

from tallybook.errors import BadInput
from tallybook.runbook.parameters import nearest

FIELDS = ("minute", "hour", "day of month", "month", "day of week")
_NEUTRAL = ("*", "*", "*", "*", "*")
_SECOND = timedelta(seconds=1)
_EVERY_HOUR = ("*", "*/1", "0-23")
WALL = datetime(2024, 1, 1)
"""A wall time to read expressions from; of a leap year, so that 29 2 exists."""


@dataclass(frozen=True, slots=True)
class Times:
    """The instants at which one entry is due."""

    expression: str
    zone: ZoneInfo

    def after(self, instant: datetime) -> datetime | None:
        """The first due instant later than ``instant``, in UTC; None where there is none."""
        if self.expression.split()[1] in _EVERY_HOUR:
            return self._shown_after(instant)
        for wall in CronSim(self.expression, self._wall(instant)):
            due = self._first_at(wall)
            if due > instant:
                return due
        return None

    def between(self, after: datetime, until: datetime) -> list[datetime]:
        """Every due instant later than ``after`` and not later than ``until``."""
        found: list[datetime] = []
        due = self.after(after)
        while due is not None and due <= until:
            found.append(due)
            due = self.after(due)
        return found

    def _shown_after(self, instant: datetime) -> datetime | None:
        """The next instant at which the clock shows a wall time of the expression.

        Up to the next change of the clock wall time and UTC run alike; a change is begun anew at.
        """
        begin, wall = instant, self._wall(instant)
        while True:
            offset = self._offset(begin)
            found = next(CronSim(self.expression, wall), None)
            if found is None:
                return None
            due = (found - offset).replace(tzinfo=UTC)
            if self._offset(due) == offset:
                return due
            begin = self._change(begin, due)
            wall = self._wall(begin) - _SECOND

    def _first_at(self, wall: datetime) -> datetime:
        """The first instant at which the clock shows ``wall``, or has leapt over it."""
        early = wall.replace(tzinfo=self.zone, fold=0).astimezone(UTC)
        if self._wall(early) == wall:
            return early
        before = wall.replace(tzinfo=self.zone, fold=1).astimezone(UTC)
        return self._change(before, early)

    def _change(self, low: datetime, high: datetime) -> datetime:
        """The first whole second after ``low``, up to ``high``, with another offset than it."""
        offset = self._offset(low)
        low = low.replace(microsecond=0)
        while high - low > _SECOND:
            middle = low + timedelta(seconds=int((high - low).total_seconds()) // 2)
            low, high = (middle, high) if self._offset(middle) == offset else (low, middle)
        return high

    def _offset(self, instant: datetime) -> timedelta:
        return instant.astimezone(self.zone).utcoffset() or timedelta()

    def _wall(self, instant: datetime) -> datetime:
        return instant.astimezone(self.zone).replace(tzinfo=None, fold=0)


def times(expression: str, zone: str) -> Times:
    """The times of an entry; raises BadInput that names the field of the expression, or the
    nearest zone."""
    fields = expression.split()
    if len(fields) != len(FIELDS):
        raise BadInput(
            f"cron: {expression!r} has {len(fields)} fields; write five: {', '.join(FIELDS)}"
        )
    for place, text in enumerate(fields):
        _check(place, text)
    known = Times(" ".join(fields), _zone(zone))
    try:
        possible = next(CronSim(known.expression, WALL), None) is not None
    except CronSimError:
        possible = False
    if not possible:
        raise BadInput(f"cron: {expression!r}: no such day in any year")
    return known


def _check(place: int, text: str) -> None:
    """Raise BadInput where the field at ``place`` alone cannot be read."""
    alone = " ".join([*_NEUTRAL[:place], text, *_NEUTRAL[place + 1 :]])
    try:
        CronSim(alone, WALL)
    except (CronSimError, AssertionError, ValueError):
        raise BadInput(f"cron: the field {FIELDS[place]} is {text!r}; {_RANGES[place]}") from None


_RANGES = (
    "write 0 to 59, as in 30, */15 or 0,30",
    "write 0 to 23, as in 2, */2 or 8-18",
    "write 1 to 31, as in 1, 1,15 or L for the last",
    "write 1 to 12 or JAN to DEC",
    "write 0 to 7 (0 and 7 are Sunday) or SUN to SAT, as in MON-FRI",
)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        known = sorted(available_timezones())
        hint = nearest(name, known) if known else "this machine has none: install tzdata"
        hint = hint if "mean" in hint or not known else "write one as in Europe/Berlin or UTC"
        raise BadInput(f"zone: no time zone {name!r}: {hint}") from None
