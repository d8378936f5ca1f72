"""Throughput, latency, outcomes, traces: exact, with empty windows and open jobs."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from ops_logs import START, Log, Simulation, random_history, text

from tallybook import ops
from tallybook.errors import BadInput
from tallybook.ops import windows


def quantile(values: list[float], share: float) -> float:
    """By linear interpolation between the two nearest ranks."""
    ranked = sorted(values)
    at = share * (len(ranked) - 1)
    low = int(at)
    high = min(low + 1, len(ranked) - 1)
    return ranked[low] + (ranked[high] - ranked[low]) * (at - low)


def test_percentiles_are_exact_by_linear_interpolation(tmp_path: Path) -> None:
    dice = random.Random(7)  # noqa: S311 - run times, by a seed
    log, runs, waits = Log(tmp_path), [], []
    for number in range(41):
        wait, run = round(dice.random(), 6), round(dice.random() * 3, 3)
        log.enqueued(f"j{number}", number)
        log.leased(f"j{number}", number)
        log.ended("job.done", f"j{number}", number + wait, number + wait + run)
        runs.append(run)
        waits.append(wait)
    with ops.open(tmp_path) as warehouse:
        (found,) = ops.latency(warehouse).to_dicts()
    for name, values in (("run", runs), ("wait", waits)):
        for percent in (50, 90, 95, 99):
            exact = quantile(values, percent / 100)
            assert found[f"{name}_p{percent}_s"] == pytest.approx(exact, abs=1e-9)
        assert found[f"{name}_mean_s"] == pytest.approx(sum(values) / len(values))
        assert found[f"{name}_max_s"] == max(values)
    assert (found["n"], found["open"]) == (41, 0)


def test_open_jobs_are_counted_and_their_age_is_a_lower_bound(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("done", 1)
    log.leased("done", 1)
    log.ended("job.done", "done", 1, 2)
    log.enqueued("waiting", 3)
    log.event("worker.stopped", 50, worker="w1", reason="asked")
    with ops.open(tmp_path) as warehouse:
        (found,) = ops.latency(warehouse).to_dicts()
        assert (found["n"], found["open"], found["open_oldest_s"]) == (1, 1, 47.0)
        assert ops.open_jobs(warehouse)["job_id"].to_list() == ["waiting"]


def test_a_window_without_events_is_there_with_rate_zero_and_null_percentiles(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path)
    log.enqueued("a", 1)
    log.leased("a", 1)
    log.ended("job.done", "a", 1, 2)
    log.enqueued("b", 181)
    with ops.open(tmp_path) as warehouse:
        rates = ops.throughput(warehouse, every="1m")
        assert rates["arrivals"].to_list() == [1, 0, 0, 1]
        assert rates["completions_per_s"].to_list() == [1 / 60, 0, 0, 0]
        times = ops.latency(warehouse, every="1m", by="topic")
        assert times["n"].to_list() == [1, 0, 0, 0] and times["run_p50_s"][1] is None


def test_a_start_before_its_enqueue_is_counted_as_negative(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("a", 5)
    log.leased("a", 5)
    log.ended("job.done", "a", 4, 6)
    with ops.open(tmp_path) as warehouse:
        (found,) = ops.latency(warehouse).to_dicts()
    assert found["wait_negative"] == 1 and found["wait_max_s"] == -1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("every", ["auto", "1500ms", "7m", "1h", "1d"])
def test_windows_lose_and_double_nothing(tmp_path: Path, seed: int, every: str) -> None:
    random_history(tmp_path, seed)
    with ops.open(tmp_path) as warehouse:
        rates = ops.throughput(warehouse, every=every, zone="Asia/Kathmandu")
        enqueued = warehouse.sql("select count(*) from jobs").fetchall()[0][0]
        assert rates["arrivals"].sum() == enqueued
        assert rates["window_start"][1:].to_list() == rates["window_end"][:-1].to_list()
        assert ops.latency(warehouse, every=every)["n"].sum() == ops.latency(warehouse)["n"].item()


@pytest.mark.parametrize(
    ("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-06-01", 24)]
)
def test_a_day_has_as_many_hours_as_its_zone_says(day: str, hours: int) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    start = windows.instant(day, berlin)
    assert start is not None
    days = windows.split(start, start + timedelta(hours=hours), timedelta(days=1), berlin)
    assert [(w.start_at, w.covered_s) for w in days] == [(start, hours * 3600.0)]
    assert (
        len(windows.split(start, start + timedelta(hours=hours), timedelta(hours=1), berlin))
        == hours
    )


@pytest.mark.parametrize("days", [1, 2])
def test_windows_of_days_follow_each_other_from_midnight_to_midnight(days: int) -> None:
    utc, start = ZoneInfo("UTC"), datetime(2026, 6, 1, tzinfo=UTC)
    found = windows.split(start, start + timedelta(days=4), timedelta(days=days), utc)
    assert [window.start_at for window in found] == [
        start + timedelta(days=at) for at in range(0, 4, days)
    ]
    assert {window.covered_s for window in found} == {days * 86_400.0}


def test_hours_begin_at_the_full_hour_of_a_zone_with_half_hours() -> None:
    kolkata = ZoneInfo("Asia/Kolkata")
    since = datetime(2026, 6, 1, 10, 10, tzinfo=UTC)
    (window,) = windows.split(since, since + timedelta(minutes=5), timedelta(hours=1), kolkata)
    assert window.start_at.astimezone(kolkata).minute == 0 and window.covered_s == 300


@pytest.mark.parametrize(
    "options",
    [{"every": "0"}, {"every": "0s"}, {"every": "-1m"}, {"every": "90000s"}, {"every": "soon"},
     {"zone": "Mars/Olympus"}, {"zone": "../etc/passwd"}, {"since": "yesterday"},
     {"since": "2026-11-30", "until": "2026-11-29"}, {"every": "1s", "since": "2000-01-01"}],
)  # fmt: skip
def test_a_window_or_zone_that_cannot_be_is_refused(
    tmp_path: Path, options: dict[str, str]
) -> None:
    Log(tmp_path).enqueued("a", 1)
    with ops.open(tmp_path) as warehouse, pytest.raises(BadInput):
        ops.throughput(warehouse, **options)


def test_depth_is_what_stands_at_the_end_of_each_window(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for number in range(3):
        log.enqueued(f"j{number}", 1)
    log.leased("j0", 61)
    log.leased("j1", 62)
    log.ended("job.done", "j0", 61, 121)
    log.ended("job.dead", "j1", 62, 122)
    with ops.open(tmp_path) as warehouse:
        from tallybook.ops import questions

        found = questions.depth(warehouse, every="1m")
        assert found.select("pending", "leased", "dead").rows() == [(3, 0, 0), (1, 2, 0), (1, 0, 1)]
        later = questions.depth(warehouse, every="1m", since=text(120))
        assert later.select("pending", "leased", "dead").rows() == [(1, 0, 1)]


def test_outcomes_count_attempts_by_reason_with_an_example(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for job, token in (("a", 1), ("a", 2), ("b", 1)):
        log.leased(job, 1, token=token)
        log.ended("job.retry_scheduled", job, 1, 2, token=token, error_type="HTTP 503",
                  http_status=503, error="busy", delay_ms=0, next_attempt_at=text(2))  # fmt: skip
    log.leased("b", 3, token=2)
    log.ended("job.dead", "b", 3, 4, token=2, error_type="HTTP 503", http_status=503)
    with ops.open(tmp_path) as warehouse:
        (found,) = ops.outcomes(warehouse).to_dicts()
    assert (found["retried"], found["dead"], found["jobs"], found["example_job_id"]) == (
        3,
        1,
        2,
        "a",
    )


def test_a_trace_finds_a_job_by_any_of_its_names_with_its_cache_entry(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("j1", 1, idempotency_key="k1", correlation_id="c1")
    log.enqueued("j2", 2, idempotency_key="k2", correlation_id="c1")
    log.leased("j1", 3)
    log.put("airport:1", {"n": 1}, 4, job_id="j1")
    log.ended("job.done", "j1", 3, 4)
    with ops.open(tmp_path) as warehouse:
        by_id = ops.trace(warehouse, "j1")["event"].to_list()
        assert by_id == ["job.enqueued", "job.leased", "cache.put", "job.done"]
        for name in ("k1", "airport:1"):
            assert ops.trace(warehouse, name)["event"].to_list() == by_id
        assert ops.trace(warehouse, "c1")["job_id"].n_unique() == 2


def test_five_thousand_jobs_are_loaded_and_counted_as_they_are(tmp_path: Path) -> None:
    Simulation(tmp_path, jobs=5000).run()
    with ops.open(tmp_path) as warehouse:
        (found,) = ops.overview(warehouse).to_dicts()
        assert found["jobs"] == 5000 == found["done"] + found["dead"]
        assert ops.throughput(warehouse)["completions"].sum() == 5000
        assert found["first_at"] == START
