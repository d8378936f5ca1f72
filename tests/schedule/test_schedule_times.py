"""When an entry is due, over both changes of the clock in four zones, by the written rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from tallybook.errors import BadInput
from tallybook.runbook.schedule.times import Times, times

CHANGES = [
    ("Europe/Berlin", "2026-03-29", "2026-10-25"),
    ("America/New_York", "2026-03-08", "2026-11-01"),
    ("Australia/Lord_Howe", "2026-10-04", "2026-04-05"),  # by half an hour
    ("Africa/Cairo", "2026-04-24", "2026-10-29"),  # at midnight
]
DAYS = [(zone, day) for zone, short, long in CHANGES for day in (short, long)]


def due(cron: str, zone: str, day: str) -> list[str]:
    """Wall times, with offset, at which the entry is due on that day of the zone."""
    known = times(cron, zone)
    begin = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    end = (datetime.fromisoformat(day) + timedelta(days=1)).replace(tzinfo=ZoneInfo(zone))
    found = known.between(begin - timedelta(seconds=1), end.astimezone(UTC) - timedelta(seconds=1))
    return [one.astimezone(ZoneInfo(zone)).strftime("%H:%M%z") for one in found]


@pytest.mark.parametrize(
    ("cron", "zone", "day", "at"),
    [
        ("30 2 * * *", "Europe/Berlin", "2026-03-29", ["03:00+0200"]),
        ("30 2 * * *", "America/New_York", "2026-03-08", ["03:00-0400"]),
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-04", ["02:30+1100"]),
        ("0 0 * * *", "Africa/Cairo", "2026-04-24", ["01:00+0300"]),
        ("*/20 2 * * *", "Europe/Berlin", "2026-03-29", ["03:00+0200"]),
        ("30 2,3 * * *", "Europe/Berlin", "2026-03-29", ["03:00+0200", "03:30+0200"]),
    ],
)
def test_a_time_that_the_clock_leaps_over_is_due_once_at_the_end_of_the_leap(
    cron: str, zone: str, day: str, at: list[str]
) -> None:
    assert due(cron, zone, day) == at


@pytest.mark.parametrize(
    ("cron", "zone", "day", "at"),
    [
        ("30 2 * * *", "Europe/Berlin", "2026-10-25", ["02:30+0200"]),
        ("30 1 * * *", "America/New_York", "2026-11-01", ["01:30-0400"]),
        ("45 1 * * *", "Australia/Lord_Howe", "2026-04-05", ["01:45+1100"]),
        ("30 23 * * *", "Africa/Cairo", "2026-10-29", ["23:30+0300"]),
        ("*/30 2 * * *", "Europe/Berlin", "2026-10-25", ["02:00+0200", "02:30+0200"]),
    ],
)
def test_a_time_that_the_clock_shows_twice_is_due_the_first_time_only(
    cron: str, zone: str, day: str, at: list[str]
) -> None:
    assert due(cron, zone, day) == at


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", "2026-03-29", 23),
        ("Europe/Berlin", "2026-10-25", 25),
        ("America/New_York", "2026-03-08", 23),
        ("America/New_York", "2026-11-01", 25),
        ("Africa/Cairo", "2026-04-24", 23),
        ("Africa/Cairo", "2026-10-29", 25),
    ],
)
def test_an_entry_of_every_hour_is_due_in_each_hour_of_the_day(
    zone: str, day: str, hours: int
) -> None:
    assert len(due("15 * * * *", zone, day)) == hours
    assert len(due("*/15 * * * *", zone, day)) == hours * 4


@pytest.mark.parametrize(("zone", "day"), DAYS)
@pytest.mark.parametrize("cron", ["45 * * * *", "10 * * * *", "*/7 * * * *", "0 * 1,24,29 * *"])
def test_an_entry_of_every_hour_is_due_whenever_the_clock_shows_it(
    cron: str, zone: str, day: str
) -> None:
    begin = datetime.fromisoformat(day).replace(tzinfo=UTC) - timedelta(hours=24)
    minutes = [begin + timedelta(minutes=n) for n in range(60 * 72)]
    shown = [one for one in minutes if shows(cron, one.astimezone(ZoneInfo(zone)))]
    assert times(cron, zone).between(begin - timedelta(seconds=1), minutes[-1]) == shown


def shows(cron: str, moment: datetime) -> bool:
    """Whether the wall clock that shows ``moment`` shows a time of the expression."""
    wall = moment.replace(tzinfo=None, fold=0)
    return next(CronSim(cron, wall - timedelta(seconds=1))) == wall


@pytest.mark.parametrize(("zone", "day"), DAYS)
@pytest.mark.parametrize("cron", ["0 */2 * * *", "30 2 * * *", "*/10 0-3 * * *", "0 12 * * *"])
def test_no_day_is_left_out_and_nothing_is_due_twice(cron: str, zone: str, day: str) -> None:
    known = times(cron, zone)
    begin = datetime.fromisoformat(day).replace(tzinfo=UTC) - timedelta(days=2)
    found = known.between(begin, begin + timedelta(days=5))
    walls = [one.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for one in found]
    assert found == sorted(set(found)) and len(walls) == len(set(walls))
    days = {wall.date() for wall in walls}
    assert len(days) == (max(days) - min(days)).days + 1 >= 4


def test_each_due_instant_is_found_from_any_instant_before_it() -> None:
    known = times("*/20 1-3 * * *", "Europe/Berlin")
    begin = datetime(2026, 10, 25, tzinfo=UTC) - timedelta(hours=3)
    every = known.between(begin, begin + timedelta(hours=8))
    for n in range(0, 8 * 3600, 433):
        instant = begin + timedelta(seconds=n, microseconds=7)
        assert known.after(instant) == next((one for one in every if one > instant), due_later())


def due_later() -> datetime:
    """The first of the next day: nothing else is due in the window."""
    return datetime(2026, 10, 26, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("cron", "zone", "said"),
    [
        ("30 2 * *", "UTC", "cron: '30 2 * *' has 4 fields; write five: minute, hour, day of"),
        ("0 30 2 * * *", "UTC", "cron: '0 30 2 * * *' has 6 fields"),
        ("60 2 * * *", "UTC", "cron: the field minute is '60'; write 0 to 59"),
        ("0 24 * * *", "UTC", "cron: the field hour is '24'; write 0 to 23"),
        ("0 2 32 * *", "UTC", "cron: the field day of month is '32'; write 1 to 31"),
        ("0 2 * JNA *", "UTC", "cron: the field month is 'JNA'; write 1 to 12"),
        ("0 2 * * 8", "UTC", "cron: the field day of week is '8'; write 0 to 7"),
        ("*/0 2 * * *", "UTC", "cron: the field minute is '*/0'"),
        ("5-1 2 * * *", "UTC", "cron: the field minute is '5-1'"),
        ("0 2 30 2 *", "UTC", "cron: '0 2 30 2 *': no such day in any year"),
        ("0 2 * * *", "Europe/Berlim", "zone: no time zone 'Europe/Berlim': did you mean Europe/B"),
        ("0 2 * * *", "../etc/passwd", "zone: no time zone '../etc/passwd': write one as in"),
        ("0 2 * * *", "", "zone: no time zone ''"),
    ],
)
def test_a_bad_expression_names_its_field_and_a_bad_zone_the_nearest(
    cron: str, zone: str, said: str
) -> None:
    with pytest.raises(BadInput) as refused:
        times(cron, zone)
    assert str(refused.value).startswith(said)


def test_a_day_of_leap_years_is_found() -> None:
    found = times("0 0 29 2 *", "UTC").after(datetime(2026, 1, 1, tzinfo=UTC))
    assert found == datetime(2028, 2, 29, tzinfo=UTC)
    assert isinstance(times("0 0 L * *", "UTC"), Times)
