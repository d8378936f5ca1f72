"""Windows of time: every instant of a span in exactly one, days as a zone counts them."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tallybook.errors import BadInput

DAY = timedelta(days=1)
MOST_WINDOWS = 10_000
_AUTO_WINDOWS = 90
_STEPS_MS = (
    10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000,
    600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000,
)  # fmt: skip
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

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


def length(every: str, span: timedelta) -> timedelta:
    """The length of ``every``: "100ms", "30s", "5m", "1h", "1d" or "auto" (about 90 windows)."""
    if every == "auto":
        wanted = span / _AUTO_WINDOWS
        steps = (timedelta(milliseconds=step) for step in _STEPS_MS)
        return next((step for step in steps if step >= wanted), -(-wanted // DAY) * DAY)
    match = re.fullmatch(r"([0-9]{1,6})(ms|s|m|h|d)", every)
    step = timedelta(milliseconds=int(match[1]) * _UNITS_MS[match[2]]) if match else timedelta()
    if not step or (step > DAY and step % DAY):
        raise BadInput(f"no window of {every!r}; write it like 100ms, 30s, 5m, 1h, 1d or auto")
    return step


def require_order(since: datetime, until: datetime) -> None:
    """Raise BadInput where ``since`` is not before ``until``."""
    if until <= since:
        raise BadInput(f"since {since.isoformat()} is not before until {until.isoformat()}")


def split(since: datetime, until: datetime, step: timedelta, zone: ZoneInfo) -> list[Window]:
    """The windows that cover ``since`` to ``until``, counted from each midnight of ``zone``.

    A window never crosses midnight; a day window has 23 or 25 hours where the zone says so.
    """
    require_order(since, until)
    if (until - since) / step > MOST_WINDOWS:
        raise BadInput(f"more than {MOST_WINDOWS:,} windows of {step}; choose a longer one")
    windows: list[Window] = []
    day = since.astimezone(zone).date()
    while (start := _midnight(day, zone)) < until:
        after = day + max(step, DAY)
        windows += _split_day(start, _midnight(after, zone), step, since, until)
        day = after
    return windows


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time.min, tzinfo=zone).astimezone(UTC)


def _split_day(
    start: datetime, end: datetime, step: timedelta, since: datetime, until: datetime
) -> list[Window]:
    windows = []
    width = end - start if step >= DAY else step
    at = start + max(0, (since - start) // width) * width
    while at < min(end, until):
        over = min(at + width, end)
        covered = (min(over, until) - max(at, since)).total_seconds()
        windows.append(Window(at, over, covered))
        at = over
    return windows
