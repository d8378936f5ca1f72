"""Depth, outcomes, traces: what stands, what failed, what happened."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from ops_histories import random_history
from ops_logs import START, Log, Simulation, text

from tallybook import ops
from tallybook.ops import Span, questions


def test_depth_is_what_stands_at_the_end_of_each_window(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for number in range(3):
        log.enqueued(f"j{number}", 1)
    log.leased("j0", 61)
    log.leased("j1", 62)
    log.ended("job.done", "j0", 61, 121)
    log.ended("job.dead", "j1", 62, 122)
    with ops.open(tmp_path) as warehouse:
        found = questions.depth(warehouse, Span(every="1m"))
        assert found.select("pending", "leased", "dead").rows() == [(3, 0, 0), (1, 2, 0), (1, 0, 1)]
        later = questions.depth(warehouse, Span(since=text(120), every="1m"))
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


STATUS_AFTER = {
    "job.leased": "leased", "job.done": "gone", "job.dead": "dead", "job.cancelled": "gone",
    "job.discarded": "gone", "job.pruned": "gone",
    **dict.fromkeys(("job.enqueued", "job.retry_scheduled", "job.snoozed", "job.lease_expired",
                     "job.released", "job.requeued"), "pending"),
}  # fmt: skip


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10**6), since=st.integers(0, 200))
def test_depth_and_backlog_are_what_a_slow_fold_says(seed: int, since: int) -> None:
    with TemporaryDirectory() as folder:
        random_history(Path(folder), seed, 150)
        with ops.open(folder) as warehouse:
            rows = warehouse.sql("from events where job_id is not null order by position").pl()
            span = Span(text(since), text(since + 600), "50s")
            depth = questions.depth(warehouse, span).to_dicts()
            every = ops.backlog(warehouse, span).to_dicts()[0]
    events = rows.to_dicts()

    def standing(until: datetime) -> list[str]:
        """The status of each job just before ``until``."""
        found = {}
        for event in events:
            if event["event"] in STATUS_AFTER and event["occurred_at"] < until:
                found[event["job_id"]] = STATUS_AFTER[event["event"]]
        return list(found.values())

    for row in depth:
        end = min(row["window_end"], START + timedelta(seconds=since + 600))
        statuses = standing(end)
        for status in ("pending", "leased", "dead"):
            assert row[status] == statuses.count(status)
    inside = [event["event"] for event in events
              if since <= (event["occurred_at"] - START).total_seconds() < since + 600]  # fmt: skip
    assert every["arrivals"] == inside.count("job.enqueued")
    assert every["completions"] == inside.count("job.done") + inside.count("job.dead")
    assert (every["pending"], every["leased"]) == (depth[-1]["pending"], depth[-1]["leased"])


def test_each_change_of_a_key_is_told_with_how_long_it_held(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put("a", {"n": 1}, 1, 1, job_id="j1")
    log.put("b", {"n": 1}, 2, 1)
    log.put("a", {"n": 2}, 3, 2)
    log.event("cache.invalidated", 4, key="a", reason="stale")
    with ops.open(tmp_path) as warehouse:
        found = ops.key_changes(warehouse, "a")
        held = found.select("change", "job_id", "held_until").rows()
        at = [START + timedelta(seconds=second) for second in (3, 4)]
        assert held == [("put", "j1", at[0]), ("put", None, at[1]), ("invalidated", None, None)]
        assert ops.key_changes(warehouse, limit=2)["key"].to_list() == ["a", "a"]
        assert ops.key_changes(warehouse)["key"].to_list() == ["a", "a", "b", "a"]


def test_every_model_has_its_columns_told(tmp_path: Path) -> None:
    Log(tmp_path)
    with ops.open(tmp_path) as warehouse:
        found = ops.model_columns(warehouse)
        for model in ("events", "jobs", "leases", "cache_history", "topics", "metrics", "segments"):
            told = found.filter(model=model)["column"].to_list()
            assert told == warehouse.sql(f"from {model} limit 0").columns
