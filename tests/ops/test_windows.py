"""Windows: every instant in one, hours and days as the clock of a zone counts them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from ops_histories import random_history
from ops_logs import START, Log

from tallybook import ops
from tallybook.errors import BadInput
from tallybook.ops import Span, windows


def test_a_window_without_events_is_there_with_rate_zero_and_null_percentiles(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path)
    log.enqueued("a", 1)
    log.leased("a", 1)
    log.ended("job.done", "a", 1, 2)
    log.enqueued("b", 181)
    with ops.open(tmp_path) as warehouse:
        rates = ops.throughput(warehouse, Span(every="1m"))
        assert rates["arrivals"].to_list() == [1, 0, 0, 1]
        assert rates["completions_per_s"].to_list() == [1 / 60, 0, 0, 0]
        times = ops.latency(warehouse, Span(every="1m"), by="topic")
        assert times["n"].to_list() == [1, 0, 0, 0] and times["run_p50_s"][1] is None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("every", ["auto", "1500ms", "7m", "1h", "1d"])
def test_windows_lose_and_double_nothing(tmp_path: Path, seed: int, every: str) -> None:
    random_history(tmp_path, seed)
    with ops.open(tmp_path) as warehouse:
        rates = ops.throughput(warehouse, Span(every=every, zone="Asia/Kathmandu"))
        enqueued = warehouse.sql("select count(*) from jobs").fetchall()[0][0]
        assert rates["arrivals"].sum() == enqueued
        assert rates["window_start"][1:].to_list() == rates["window_end"][:-1].to_list()
        assert (
            ops.latency(warehouse, Span(every=every))["n"].sum()
            == ops.latency(warehouse)["n"].item()
        )


@pytest.mark.parametrize(
    ("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-06-01", 24)]
)
def test_a_day_has_as_many_hours_as_its_zone_says(day: str, hours: int) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    start = windows.instant(day, berlin)
    assert start is not None
    days = windows.split(start, start + timedelta(hours=hours), timedelta(days=1), berlin)
    assert [(w.start_at, w.covered_s) for w in days.each] == [(start, hours * 3600.0)]
    each_hour = windows.split(start, start + timedelta(hours=hours), timedelta(hours=1), berlin)
    assert len(each_hour.each) == hours


@pytest.mark.parametrize("days", [1, 2])
def test_windows_of_days_follow_each_other_from_midnight_to_midnight(days: int) -> None:
    utc, start = ZoneInfo("UTC"), datetime(2026, 6, 1, tzinfo=UTC)
    found = windows.split(start, start + timedelta(days=4), timedelta(days=days), utc)
    assert [window.start_at for window in found.each] == [
        start + timedelta(days=at) for at in range(0, 4, days)
    ]
    assert {window.covered_s for window in found.each} == {days * 86_400.0}


SET = [
    ("Europe/Berlin", "2026-03-29", "1h", {1}, 23),
    ("Europe/Berlin", "2026-10-25", "1h", {1}, 25),
    ("Europe/Berlin", "2026-10-25", "6h", {6, 7}, 4),
    ("America/New_York", "2026-03-08", "1d", {23}, 1),
    ("America/New_York", "2026-11-01", "1d", {25}, 1),
    ("Australia/Lord_Howe", "2026-10-04", "1d", {23.5}, 1),
    ("Australia/Lord_Howe", "2026-10-04", "1h", {1, 0.5}, 24),
    ("Australia/Lord_Howe", "2026-04-05", "1h", {1, 1.5}, 24),
    ("Asia/Kathmandu", "2026-06-01", "1h", {1}, 24),
    ("Africa/Cairo", "2026-04-24", "1h", {1}, 23),
]


@pytest.mark.parametrize(("name", "day", "every", "hours", "count"), SET)
def test_windows_begin_where_the_clock_of_the_zone_shows_a_multiple_and_count_what_is_in_them(
    tmp_path: Path, name: str, day: str, every: str, hours: set[float], count: int
) -> None:
    zone = ZoneInfo(name)
    start = datetime.fromisoformat(day).replace(tzinfo=zone)
    after = (datetime.fromisoformat(day) + timedelta(days=1)).replace(tzinfo=zone)
    log, job = Log(tmp_path), 0
    moment = start.astimezone(UTC)
    while moment < after.astimezone(UTC):
        log.enqueued(f"j{job}", (moment - START).total_seconds())
        moment, job = moment + timedelta(minutes=10), job + 1
    with ops.open(tmp_path) as warehouse:
        found = ops.throughput(warehouse, Span(start, after, every, name))
    lengths = (found["window_end"] - found["window_start"]).dt.total_seconds() / 3600
    assert (found.height, set(lengths)) == (count, hours)
    assert found["arrivals"].to_list() == [6 * length for length in lengths]
    assert found["arrivals_per_s"].to_list() == pytest.approx([1 / 600] * count)


def test_only_what_lies_in_the_span_is_counted_and_its_rate_is_over_that_part(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path)
    for second in range(0, 7200, 60):
        log.enqueued(f"j{second}", second)
    with ops.open(tmp_path) as warehouse:
        span = Span(START + timedelta(minutes=30), START + timedelta(minutes=90), "1h")
        found = ops.throughput(warehouse, span)
        assert found["arrivals"].to_list() == [30, 30]
        assert found["arrivals_per_s"].to_list() == [1 / 60, 1 / 60]
        assert ops.latency(warehouse, span)["open"].to_list() == [30, 30]


def test_hours_begin_at_the_full_hour_of_a_zone_with_half_hours() -> None:
    kolkata = ZoneInfo("Asia/Kolkata")
    since = datetime(2026, 6, 1, 10, 10, tzinfo=UTC)
    (window,) = windows.split(since, since + timedelta(minutes=5), timedelta(hours=1), kolkata).each
    assert window.start_at.astimezone(kolkata).minute == 0 and window.covered_s == 300


@pytest.mark.parametrize(
    "options",
    [{"every": "0"}, {"every": "0s"}, {"every": "-1m"}, {"every": "90000s"}, {"every": "soon"},
     {"every": "10000000d"}, {"zone": "Mars/Olympus"}, {"zone": "../etc/passwd"},
     {"since": "yesterday"}, {"since": "2026-11-30", "until": "2026-11-29"},
     {"every": "1s", "since": "2000-01-01"},
     {"since": "0001-01-01", "zone": "Asia/Tokyo"}],
)  # fmt: skip
def test_a_window_or_zone_that_cannot_be_is_refused(
    tmp_path: Path, options: dict[str, str]
) -> None:
    Log(tmp_path).enqueued("a", 1)
    with ops.open(tmp_path) as warehouse, pytest.raises(BadInput):
        ops.throughput(warehouse, Span(**options))


def test_a_zone_that_does_not_exist_names_the_nearest() -> None:
    with pytest.raises(
        BadInput, match=r"no time zone 'Europe/Berln'; did you mean Europe/Berlin\?"
    ):
        Span(zone="Europe/Berln")
