"""Latency: exact, with open jobs, by either plan, and two periods compared."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ops_histories import random_history
from ops_logs import START, Log, text

from tallybook import ops
from tallybook.errors import BadInput
from tallybook.ops import Span, questions


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


def test_a_start_before_its_enqueue_is_counted_as_negative(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("a", 5)
    log.leased("a", 5)
    log.ended("job.done", "a", 4, 6)
    with ops.open(tmp_path) as warehouse:
        (found,) = ops.latency(warehouse).to_dicts()
    assert found["wait_negative"] == 1 and found["wait_max_s"] == -1


def slow_latency(events: list[dict[str, Any]], since: float, until: float) -> dict[str, Any]:
    """The times of the jobs enqueued in a span, job by job, in plain Python."""
    waits, totals, ended, still_open = [], [], 0, 0
    for job in {event["job_id"] for event in events if event["event"] == "job.enqueued"}:
        own = [event for event in events if event["job_id"] == job]
        created = own[0]["occurred_at"]
        if not since <= created < until:
            continue
        due = own[0]["next_attempt_at"] or created
        starts = [event["started_at"] for event in own if event["started_at"] is not None]
        waits += [min(starts) - due] if starts else []
        last = [event for event in own if event["event"] in MOVES][-1]["event"]
        finals = [event for event in own if event["event"] in ("job.done", "job.dead")]
        ended += last in FINAL
        still_open += last not in FINAL
        if last in ("job.done", "job.dead"):
            totals.append(finals[-1]["occurred_at"] - due)
    return {"n": ended, "open": still_open, "wait": waits, "total": totals}


FINAL = ("job.done", "job.dead", "job.cancelled", "job.discarded")
MOVES = (*FINAL, "job.enqueued", "job.leased", "job.retry_scheduled", "job.snoozed",
         "job.lease_expired", "job.released", "job.requeued")  # fmt: skip


@pytest.mark.parametrize("most_in_memory", [10**9, 0], ids=["in memory", "ranked"])
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10**6), since=st.integers(0, 300), length=st.integers(1, 2000))
def test_latency_is_what_a_slow_fold_says_by_either_plan(
    most_in_memory: int, seed: int, since: int, length: int
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(questions, "MOST_IN_MEMORY", most_in_memory)
        random_history(Path(folder), seed, 150)
        with ops.open(folder) as warehouse:
            rows = warehouse.sql("from events where job_id is not null order by position").pl()
            span = Span(text(since), text(since + length))
            (found,) = ops.latency(warehouse, span).to_dicts()
            rates = ops.throughput(warehouse, replace(span, every="30s"))
    moments = ("occurred_at", "next_attempt_at", "started_at")
    events = [
        row | {m: row[m] and (row[m] - START).total_seconds() for m in moments}
        for row in rows.to_dicts()
    ]
    slow = slow_latency(events, since, since + length)
    assert (found["n"], found["open"]) == (slow["n"], slow["open"])
    for name in ("wait", "total"):
        values = slow[name]
        for percent in (50, 90, 95, 99):
            exact = quantile(values, percent / 100) if values else None
            assert found[f"{name}_p{percent}_s"] == (exact and pytest.approx(exact, abs=1e-6))
    runs = {(e["job_id"], e["lease_token"]): e["started_at"] for e in reversed(events)
            if e["started_at"] is not None and e["event"] in ENDS}  # fmt: skip
    told = [e for e in events if e["started_at"] is not None and e["event"] not in ENDS]
    for event in told:
        name = (event["job_id"], event["lease_token"])
        runs[name] = runs.get(name, event["started_at"])
    assert rates["starts"].sum() == sum(since <= at < since + length for at in runs.values())


ENDS = ("job.done", "job.dead", "job.retry_scheduled", "job.snoozed", "job.cancelled")


def test_two_periods_are_compared_group_by_group(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for number in range(20):
        at, slow = number * 10, number >= 10
        topic = "b" if slow and number % 2 else "a"
        log.enqueued(f"j{number}", at, topic)
        log.leased(f"j{number}", at)
        log.ended("job.done", f"j{number}", at + 1, at + (5 if slow else 2))
    log.event("worker.stopped", 200, worker="w1", reason="asked")
    with ops.open(tmp_path) as warehouse:
        before, after = ops.halves(warehouse, moment=text(100))
        every = {row["measure"]: row for row in ops.compare(warehouse, before, after).to_dicts()}
        topics = ops.compare(warehouse, before, after, by="topic").to_dicts()
    assert (every["run_p50_s"]["before"], every["run_p50_s"]["after"]) == (1, 4)
    assert every["run_p50_s"]["ratio"] == 4 and every["run_p50_s"]["difference"] == 3
    rates = {row["topic"]: row for row in topics if row["measure"] == "jobs_per_s"}
    assert rates["a"]["before"] == 0.1 and rates["a"]["after"] == pytest.approx(0.05)
    assert (rates["b"]["before"], rates["b"]["n_before"], rates["b"]["n_after"]) == (0, 0, 5)
    assert rates["b"]["ratio"] is None


def test_a_moment_outside_the_log_makes_no_two_periods(tmp_path: Path) -> None:
    Log(tmp_path).enqueued("a", 1)
    with ops.open(tmp_path) as warehouse, pytest.raises(BadInput, match="is not inside"):
        ops.halves(warehouse, moment=text(-5))


def test_a_server_that_stalls_shows_in_the_wait_from_when_jobs_were_due(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for number in range(100):
        log.enqueued(f"j{number}", number * 0.1)
    for number in range(100):
        started = max(15.0, number * 0.1) + number * 0.001
        log.leased(f"j{number}", started)
        log.ended("job.done", f"j{number}", started, started + 0.001)
    with ops.open(tmp_path) as warehouse:
        (found,) = ops.latency(warehouse).to_dicts()
    assert found["run_mean_s"] == pytest.approx(0.001) and found["total_mean_s"] > 7.5


def test_a_percentile_of_few_jobs_is_between_its_neighbours_and_says_of_how_many(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path)
    for number in range(100):
        log.enqueued(f"j{number}", number)
        log.leased(f"j{number}", number)
        run = 60 if number == 99 else 1
        log.ended("job.done", f"j{number}", number, number + run)
    with ops.open(tmp_path) as warehouse:
        (found,) = ops.latency(warehouse).to_dicts()
    assert (found["n"], found["run_max_s"]) == (100, 60)
    assert found["run_p99_s"] == pytest.approx(1.59) and found["run_p95_s"] == 1
