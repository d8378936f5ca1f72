"""Spans of time, and the windows that they are divided into, as the clock of a zone counts them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from difflib import get_close_matches
from itertools import pairwise
from math import gcd
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from tallybook.errors import BadInput

DAY = timedelta(days=1)
MICROSECOND = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST_WINDOWS = 10_000
AUTO = "auto"
_AUTO_WINDOWS = 90
_STEPS_MS = (
    10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000,
    600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000,
)  # fmt: skip
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

Instant = str | datetime | None


@dataclass(frozen=True, slots=True)
class Span:
    """The span of time that a question is about, checked as it is made.

    ``since`` up to, not including, ``until``: ISO 8601 text, on the clock of ``zone`` where it has
    no offset; empty for the begin or the end of the log. ``every`` is the length of its windows:
    100ms, 30s, 5m, 1h, 1d or auto (about 90 windows); empty as the question does by itself.
    Raises BadInput for a zone or a time that does not exist and for a span that is none.
    """

    since: Instant = None
    until: Instant = None
    every: str = ""
    zone: str = "UTC"

    def __post_init__(self) -> None:
        if self.every:
            length(self.every, DAY)
        if self.start_at and self.end_at:
            require_order(self.start_at, self.end_at)

    @property
    def start_at(self) -> datetime | None:
        """``since`` in UTC; None where it is not given."""
        return instant(self.since, named_zone(self.zone))

    @property
    def end_at(self) -> datetime | None:
        """``until`` in UTC; None where it is not given."""
        return instant(self.until, named_zone(self.zone))

    @property
    def narrow(self) -> bool:
        """Whether it may leave something of the log out."""
        return bool(self.since or self.until)

    def bounds(self) -> dict[str, datetime | None]:
        """``$since`` and ``$until`` of a statement."""
        return {"since": self.start_at, "until": self.end_at}

    def within(self, first: datetime | None, last: datetime | None) -> tuple[datetime, datetime]:
        """The span, where it is open from ``first`` to just after ``last``."""
        start = self.start_at or min(first or EPOCH, self.end_at or first or EPOCH)
        end = self.end_at or max(last or start, start) + MICROSECOND
        return start, max(end, start + MICROSECOND)


@dataclass(frozen=True, slots=True)
class Window:
    """From ``start_at`` up to, not including, ``end_at``; ``covered_s`` of it lie in the span."""

    start_at: datetime
    end_at: datetime
    covered_s: float


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows that follow each other over the span ``since`` to ``until``."""

    since: datetime
    until: datetime
    each: tuple[Window, ...]

    def parameters(self) -> dict[str, Any]:
        """What a statement by windows takes.

        All windows are whole multiples of ``grain_us`` long, counted from the first start: what
        lies in one grain lies in one window.
        """
        lengths = [(window.end_at - window.start_at) // MICROSECOND for window in self.each]
        return {
            "since": self.since,
            "until": self.until,
            "starts": [window.start_at for window in self.each],
            "ends": [window.end_at for window in self.each],
            "covered": [window.covered_s for window in self.each],
            "grain_us": gcd(*lengths),
        }


def named_zone(name: str) -> ZoneInfo:
    """The time zone ``name``; raises BadInput where there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        known = {zone.lower(): zone for zone in sorted(available_timezones())}
        near = get_close_matches(name.lower(), known, 1)
        hint = f"did you mean {known[near[0]]}?" if near else "name one like Europe/Berlin or UTC"
        raise BadInput(f"no time zone {name!r}; {hint}") from None


def instant(given: Instant, zone: ZoneInfo) -> datetime | None:
    """The instant in UTC of an ISO 8601 text or a datetime; without an offset it is in ``zone``."""
    if given is None or given == "":
        return None
    try:
        moment = datetime.fromisoformat(given) if isinstance(given, str) else given
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadInput(
            f"no time {given!r}; write it like 2026-11-29T22:00 or 2026-11-29T22:00:00Z"
        ) from None


def length(every: str, span: timedelta) -> timedelta:
    """The length of ``every``: "100ms", "30s", "5m", "1h", "1d" or "auto" (about 90 windows)."""
    if every == AUTO:
        return step_of(span, _AUTO_WINDOWS)
    match = re.fullmatch(r"([0-9]{1,6})(ms|s|m|h|d)", every)
    step = timedelta(milliseconds=int(match[1]) * _UNITS_MS[match[2]]) if match else timedelta()
    if not step or (step > DAY and step % DAY):
        raise BadInput(f"no window of {every!r}; write it like 100ms, 30s, 5m, 1h, 1d or auto")
    return step


def step_of(span: timedelta, most: int) -> timedelta:
    """The shortest round step of which at most ``most`` cover the span."""
    wanted = span / most
    steps = (timedelta(milliseconds=step) for step in _STEPS_MS)
    return next((step for step in steps if step >= wanted), -(-wanted // DAY) * DAY)


def require_order(since: datetime, until: datetime) -> None:
    """Raise BadInput where ``since`` is not before ``until``."""
    if until <= since:
        raise BadInput(f"since {since.isoformat()} is not before until {until.isoformat()}")


def whole(since: datetime, until: datetime) -> Windows:
    """The span as one window."""
    return Windows(since, until, (Window(since, until, (until - since).total_seconds()),))


def split(since: datetime, until: datetime, step: timedelta, zone: ZoneInfo) -> Windows:
    """The windows that cover ``since`` to ``until``, counted from each midnight of ``zone``.

    A window begins where the clock of the zone shows a multiple of ``step`` or is set past one: a
    day has 23 or 25 hours where the zone says so, and an hour that is shown twice is there twice.
    """
    require_order(since, until)
    if (until - since) / step > MOST_WINDOWS:
        raise BadInput(f"more than {MOST_WINDOWS:,} windows of {step}; choose a longer one")
    steps = [two for two in pairwise(_clock(since, until, step, zone)) if two[1] > since]
    windows = []
    for start, end in steps:
        if start < until:
            covered = (min(end, until) - max(start, since)).total_seconds()
            windows.append(Window(start, end, covered))
    return Windows(since, until, tuple(windows))


def _clock(since: datetime, until: datetime, step: timedelta, zone: ZoneInfo) -> list[datetime]:
    """Every instant at which a window begins, from one at or before ``since`` to one after all."""
    day = since.astimezone(zone).date()
    instants: set[datetime] = set()
    while (start := _midnight(day, zone)) < until:
        after = day + max(step, DAY)
        end = _midnight(after, zone)
        instants |= {start, end}
        if step < DAY:
            instants.update(_within_day(day, (start, end), (since, until), step, zone))
        day = after
    return sorted(instants)


def _within_day(
    day: date,
    reach: tuple[datetime, datetime],
    asked: tuple[datetime, datetime],
    step: timedelta,
    zone: ZoneInfo,
) -> Iterator[datetime]:
    """When the clock of ``day`` shows, or is set past, a multiple of ``step``, near ``asked``."""
    midnight = datetime.combine(day, time.min, tzinfo=UTC)
    multiple = 0
    for start, end in _pieces(*reach, zone):
        shown = start + _offset(start, zone) - midnight
        first = -(-shown // step)
        if multiple <= first - 1 and first * step != shown:
            yield start
        earliest = max(first, (asked[0] - start + shown) // step)
        latest = min(end, asked[1] + step) - start + shown
        multiple = -(-(end - start + shown) // step)
        for number in range(earliest, -(-latest // step)):
            yield start + (number * step - shown)


def _pieces(start: datetime, end: datetime, zone: ZoneInfo) -> Iterator[tuple[datetime, datetime]]:
    """From ``start`` to ``end``, cut where the clock of ``zone`` is set."""
    low, high = start, end - MICROSECOND
    if _offset(low, zone) == _offset(high, zone):
        yield start, end
        return
    while high - low > MICROSECOND:
        middle = low + (high - low) // 2
        if _offset(middle, zone) == _offset(start, zone):
            low = middle
        else:
            high = middle
    yield start, high
    yield high, end


def _offset(at: datetime, zone: ZoneInfo) -> timedelta:
    return at.astimezone(zone).utcoffset() or timedelta()


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time.min, tzinfo=zone).astimezone(UTC)


WHOLE = Span()
