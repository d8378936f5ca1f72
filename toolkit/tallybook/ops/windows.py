"""Windows of time: every instant of a span in exactly one, days as a zone counts them."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tallybook.errors import BadInput

DAY_S = 86_400
MOST_WINDOWS = 10_000
_AUTO_WINDOWS = 90
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200)
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": DAY_S}

Instant = str | datetime | None


@dataclass(frozen=True, slots=True)
class Window:
    """From ``start_at`` up to, not including, ``end_at``; ``covered_s`` of it lie in the span."""

    start_at: datetime
    end_at: datetime
    covered_s: float


def named_zone(name: str) -> ZoneInfo:
    """The time zone ``name``; raises BadInput where there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadInput(f"no time zone {name!r}; name one like Europe/Berlin or UTC") from None


def instant(given: Instant, zone: ZoneInfo) -> datetime | None:
    """The instant in UTC of an ISO 8601 text or a datetime; without an offset it is in ``zone``."""
    if given is None or given == "":
        return None
    try:
        moment = datetime.fromisoformat(given) if isinstance(given, str) else given
    except ValueError:
        raise BadInput(
            f"no time {given!r}; write it like 2026-11-29T22:00 or 2026-11-29T22:00:00Z"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)


def step_s(every: str, span: timedelta) -> int:
    """The length of ``every`` ("30s", "5m", "1h", "1d" or "auto") in seconds."""
    if every == "auto":
        wanted = span.total_seconds() / _AUTO_WINDOWS
        return next((step for step in _STEPS if step >= wanted), _whole_days(wanted))
    match = re.fullmatch(r"([0-9]{1,6})([smhd])", every)
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    if seconds < 1 or (seconds > DAY_S and seconds % DAY_S):
        raise BadInput(f"no window of {every!r}; write it like 30s, 5m, 1h, 1d or auto")
    return seconds


def _whole_days(seconds: float) -> int:
    return max(1, -int(-seconds // DAY_S)) * DAY_S


def split(since: datetime, until: datetime, step: int, zone: ZoneInfo) -> list[Window]:
    """The windows that cover ``since`` to ``until``, counted from each midnight of ``zone``.

    A window never crosses midnight; a day window has 23 or 25 hours where the zone says so.
    """
    if until <= since:
        raise BadInput(f"since {since.isoformat()} is not before until {until.isoformat()}")
    if (until - since).total_seconds() / step > MOST_WINDOWS:
        raise BadInput(f"more than {MOST_WINDOWS:,} windows of {step} s; choose a longer one")
    windows: list[Window] = []
    day = since.astimezone(zone).date()
    while (start := _midnight(day, zone)) < until:
        after = day + timedelta(days=max(1, step // DAY_S))
        windows += _split_day(start, _midnight(after, zone), step, since, until)
        day = after
    return windows


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time.min, tzinfo=zone).astimezone(UTC)


def _split_day(
    start: datetime, end: datetime, step: int, since: datetime, until: datetime
) -> list[Window]:
    windows = []
    length = end - start if step >= DAY_S else timedelta(seconds=step)
    first = max(0, (since - start) // length)
    at = start + first * length
    while at < min(end, until):
        over = min(at + length, end)
        covered = (min(over, until) - max(at, since)).total_seconds()
        windows.append(Window(at, over, covered))
        at = over
    return windows
