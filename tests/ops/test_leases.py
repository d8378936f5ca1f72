"""Leases: each trouble is told apart, proven by its events, and has a command that exists."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ops_histories import random_history
from ops_logs import Log, Simulation, text

from tallybook import ops
from tallybook.cli.main import _parser
from tallybook.ops import Span
from tallybook.ops.leases import STATUSES


def beat(book: Path, worker: str, at: float, *jobs: tuple[str, int, float | None]) -> None:
    """The heartbeat file of a worker, as it writes it."""
    held = [
        {"job_id": job, "lease_token": token, "started_at": None if s is None else text(s)}
        for job, token, s in jobs
    ]
    (book / "heartbeats").mkdir(exist_ok=True)
    said = {"pid": 7, "host": "host-1", "beat_at": text(at), "jobs": held}
    (book / "heartbeats" / f"{worker}.json").write_text(json.dumps(said))


def held(log: Log) -> None:
    log.leased("j", 10)
    log.event("worker.started", 20, worker="w2")


def late(log: Log) -> None:
    log.leased("j", 10)
    log.ended("job.done", "j", 11, 71.5)


def expired(log: Log) -> None:
    log.leased("j", 10)
    log.expired("j", 70)


def overdue(log: Log) -> None:
    log.leased("j", 10)
    log.event("worker.started", 100, worker="w2")


def stopped(log: Log) -> None:
    log.leased("j", 10)
    log.event("worker.stopped", 11, worker="w1", reason="died")


def not_in_heartbeat(log: Log) -> None:
    log.leased("j", 10)
    log.event("worker.started", 20, worker="w2")
    beat(log.book, "w1", 19, ("other", 1, 15))


def hung_open(log: Log) -> None:
    log.leased("fine", 1)
    log.ended("job.done", "fine", 1, 2)
    log.leased("j", 10)
    log.extended("j", 60, started_at=text(10.5))
    log.extended("j", 110, started_at=text(10.5))
    beat(log.book, "w1", 110, ("j", 1, 10.5))


def hung_taken(log: Log) -> None:
    log.leased("j", 10)
    log.extended("j", 30, started_at=text(10.5))
    log.expired("j", 90)


def waiting(log: Log) -> None:
    log.leased("j", 10)
    log.event("worker.started", 20, worker="w2")
    beat(log.book, "w1", 20, ("j", 1, None), ("other", 1, 12))


def waited_until_taken(log: Log) -> None:
    log.leased("j", 10)
    log.extended("j", 30)
    log.expired("j", 90)


def double(log: Log) -> None:
    log.leased("j", 10)
    log.expired("j", 70)
    log.leased("j", 71, "w2", 2)
    log.refused("j", 11, 75)
    log.ended("job.done", "j", 72, 80, "w2", 2)


def skewed(log: Log) -> None:
    log.leased("j", 10, boot_us=10_000_000)
    log.ended("job.done", "j", 11, 42, boot_us=12_000_000)


def poison(log: Log) -> None:
    for token in (1, 2, 3):
        log.leased("j", token * 100, token=token)
        log.expired("j", token * 100 + 1, token=token, reason="worker_dead")


KINDS: list[tuple[str, Callable[[Log], None], str, str]] = [
    ("held", held, "w1 holds it until 10:01:10Z", "trace j"),
    ("late", late, "w1 settled it 1.500 s after its end; nobody had taken it", "trace j"),
    ("expired", expired, "taken from w1: expired", "trace j"),
    ("expired", overdue, "w1 holds it 30.000 s longer than it may", "jobs release j"),
    ("orphan", stopped, "w1 is gone; held until 10:01:10Z", "jobs release j"),
    ("orphan", not_in_heartbeat, "w1 is gone; held until 10:01:10Z", "jobs release j"),
    ("hung", hung_open, "its handler had run 99.500 s; 99 % of 1 run of its topic took at most "
     "1.000 s", "jobs cancel j"),
    ("hung", hung_taken, "its handler had run 79.500 s", "trace j"),
    ("waiting in memory", waiting, "w1 has not started it in 10.000 s", "trace j"),
    ("waiting in memory", waited_until_taken, "w1 has not started it in 80.000 s", "trace j"),
    ("double run", double, "w1 and w2 ran it at once for 3.000 s", "trace j"),
    ("clock-skewed", skewed, "the clock was set by +30.000 s while it was held", "trace j"),
    ("poison", poison, "3 leases of the job did not outlive it", "jobs cancel j"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "happen", "detail", "words"), KINDS)
def test_a_lease_is_told_by_its_status_with_evidence_and_a_command_that_exists(
    tmp_path: Path, status: str, happen: Callable[[Log], None], detail: str, words: str
) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 1)
    happen(log)
    with ops.open(tmp_path) as warehouse:
        rows = ops.lease_states(warehouse).to_dicts()
        trace = ops.trace(warehouse, "j")["seq"].to_list()
    (found,) = [row for row in rows if row["status"] == status]
    assert found["job_id"] == "j" and found["detail"] == detail
    assert found["idempotency_key"] == "key-j" and found["segment"] == log.path.name
    assert found["evidence"] and set(found["evidence"]) <= set(trace)
    assert found["command"] == f"tallybook {words} --book {tmp_path.resolve()}"
    given = shlex.split(found["command"])[1:]
    assert _parser(given[0])[0].parse_args(given)


def test_every_status_is_tried() -> None:
    assert {kind[0] for kind in KINDS} == set(STATUSES)


@pytest.mark.parametrize(
    ("event", "job_status", "words"),
    [("job.dead", "dead", "jobs discard"), ("job.done", "done", "trace")],
)
def test_a_job_that_killed_its_workers_is_mended_by_what_it_is_now(
    tmp_path: Path, event: str, job_status: str, words: str
) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 1)
    poison(log)
    log.leased("j", 500, token=4)
    log.ended(event, "j", 500, 501, token=4)
    with ops.open(tmp_path) as warehouse:
        rows = ops.lease_states(warehouse).to_dicts()
    (found,) = [row for row in rows if row["status"] == "poison"]
    assert found["job_status"] == job_status and f"tallybook {words} j" in found["command"]


def test_a_reboot_is_no_clock_that_was_set_and_kills_nobody(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 1)
    for token in (1, 2):
        log.leased("j", 100 * token, token=token, boot_us=5_000_000)
        log.open_segment(100 * token + 50, boot_id=f"boot-{token + 1}")
        log.expired("j", 100 * token + 51, token=token, reason="reboot", boot_us=1_000_000)
    with ops.open(tmp_path) as warehouse:
        found = ops.lease_states(warehouse)
    assert found["how"].to_list() == ["reboot", "reboot"]
    assert found["status"].to_list() == ["expired", "expired"]


def test_heartbeats_say_nothing_of_an_instant_before_the_end_of_the_log(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 1)
    not_in_heartbeat(log)
    with ops.open(tmp_path) as warehouse:
        assert ops.lease_states(warehouse)["status"].to_list() == ["orphan"]
        assert ops.lease_states(warehouse, at=text(15))["status"].to_list() == ["held"]
    beat(tmp_path, "w1", 20, ("j", 1, None))
    with ops.open(tmp_path) as warehouse:
        assert ops.lease_states(warehouse)["status"].to_list() == ["waiting in memory"]
        assert ops.lease_states(warehouse, at=text(15))["status"].to_list() == ["held"]


def test_a_lease_claimed_after_the_last_beat_is_held(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 1)
    log.leased("j", 10)
    log.event("worker.started", 11, worker="w2")
    beat(tmp_path, "w1", 9.5)
    (tmp_path / "heartbeats" / "torn.json").write_text('{"pid"')
    with ops.open(tmp_path) as warehouse:
        assert ops.lease_states(warehouse)["status"].to_list() == ["held"]


def test_a_double_run_names_both_workers_whose_settle_won_and_which_was_refused(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 1)
    double(log)
    with ops.open(tmp_path) as warehouse:
        (pair,) = ops.double_runs(warehouse).to_dicts()
        assert ops.double_runs(warehouse, Span(until=text(72))).is_empty()
        assert ops.double_runs(warehouse, Span(text(74), text(90))).height == 1
    assert (pair["first_worker"], pair["second_worker"], pair["overlap_s"]) == ("w1", "w2", 3)
    assert (pair["winner_token"], pair["winner_settle"]) == (2, "done")
    assert pair["refused_tokens"] == [1] and pair["segments"] == [log.path.name]


def test_a_run_that_never_settled_reaches_to_the_last_sign_of_it(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 1)
    log.leased("j", 10)
    log.expired("j", 70)
    log.leased("j", 71, "w2", 2)
    log.refused("j", 11, 74, settle="extend", duration_ms=None)
    log.ended("job.done", "j", 72, 80, "w2", 2)
    with ops.open(tmp_path) as warehouse:
        assert ops.double_runs(warehouse)["overlap_s"].to_list() == [2]


def test_runs_one_after_the_other_are_no_double_run(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 1)
    log.leased("j", 10)
    log.ended("job.retry_scheduled", "j", 10, 12, delay_ms=0, next_attempt_at=text(12))
    log.leased("j", 12, "w2", 2)
    log.ended("job.done", "j", 12, 13, "w2", 2)
    with ops.open(tmp_path) as warehouse:
        assert ops.double_runs(warehouse).is_empty()


def slow_pairs(events: list[dict[str, Any]]) -> set[tuple[str, int, int]]:
    """Overlapping runs, pair by pair, in plain Python."""
    runs: dict[tuple[str, int], tuple[Any, Any]] = {}
    for event in events:
        if event["started_at"] is None or event["lease_token"] is None:
            continue
        name = (event["job_id"], event["lease_token"])
        by_beat = event["event"] == "job.extended" or event["settle"] == "extend"
        lasted = None if by_beat else event["duration_ms"]
        measured = event["started_at"] + timedelta(milliseconds=lasted or 0)
        until = event["occurred_at"] if lasted is None else measured
        start, end = runs.get(name, (event["started_at"], until))
        runs[name] = (min(start, event["started_at"]), max(end, until))
    return {
        (job, token, other)
        for (job, token), (start, end) in runs.items()
        for (same, other), (begin, over) in runs.items()
        if same == job and token < other and begin < end and start < over
    }


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_double_runs_and_open_leases_are_what_a_slow_fold_says(seed: int) -> None:
    with TemporaryDirectory() as folder:
        random_history(Path(folder), seed, 200)
        with ops.open(folder) as warehouse:
            rows = warehouse.sql("from events where job_id is not null order by position").pl()
            pairs = ops.double_runs(warehouse)
            states = ops.lease_states(warehouse)
    events = rows.to_dicts()
    names = set(pairs.select("job_id", "first_token", "second_token").iter_rows())
    assert names == slow_pairs(events)
    holders: dict[str, int] = {}
    for event in events:
        if event["event"] == "job.leased":
            holders[event["job_id"]] = event["lease_token"]
        elif event["event"] in ENDS:
            holders.pop(event["job_id"], None)
    still_open = states.filter(states["ended_at"].is_null() & (states["status"] != "double run"))
    lone = still_open.filter(~still_open["status"].is_in(["poison", "clock-skewed"]))
    assert set(lone.select("job_id", "lease_token").iter_rows()) == set(holders.items())


ENDS = ("job.done", "job.retry_scheduled", "job.dead", "job.snoozed", "job.released",
        "job.lease_expired", "job.cancelled")  # fmt: skip


def test_a_simulated_book_has_a_double_run_or_none_for_each_late_result(tmp_path: Path) -> None:
    Simulation(tmp_path, jobs=600, seed=3).run()
    with ops.open(tmp_path) as warehouse:
        refused = warehouse.sql("select job_id from events where event = 'job.settle_refused'").pl()
        pairs = ops.double_runs(warehouse)
    assert set(pairs["job_id"]) <= set(refused["job_id"]) and pairs.height
