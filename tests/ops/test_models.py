"""The SQL models: rows in, rows out, and held to the fold that the runtime uses."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ops_histories import random_history
from ops_logs import Log, text

from tallybook import ops
from tallybook.event import Event, decode
from tallybook.fold import MemoryTables, apply
from tallybook.ops.openings import order_writers
from tallybook.ops.warehouse import Warehouse

SEEDS = range(6)
SAME = ("topic", "idempotency_key", "priority", "attempt_count", "rescue_count", "max_attempts",
        "lease_token", "locked_by", "last_error", "error_type", "resource",
        "ordering_key")  # fmt: skip


def history(book: Path) -> list[Event]:
    """Every event of a book that ``random_history`` wrote, in order."""
    events: list[Event] = []
    writers: dict[str, list[Event]] = {}
    for path in sorted((book / "log").glob("*.ndjson")):
        writer = boot_id = ""
        for line in path.read_bytes().splitlines():
            event = decode(line, writer, boot_id)
            writer, boot_id = event.writer, event.boot_id
            writers.setdefault(writer, []).append(event)
    following = {part[0].get("previous_writer"): part for part in writers.values()}
    part = following.get(None)
    while part:
        events += part
        part = following.get(part[0].writer)
    return events


def folded(events: list[Event]) -> MemoryTables:
    tables = MemoryTables()
    for ordinal, event in enumerate(events):
        apply(tables, event, ordinal)
    return tables


def require_same_jobs(warehouse: Warehouse, events: list[Event]) -> None:
    """The model `jobs` is what the fold of the runtime leaves."""
    wanted = {job.job_id: job for job in folded(events).jobs.values()}
    found = warehouse.sql("from jobs where pruned_at is null").pl().to_dicts()
    assert {row["job_id"] for row in found} == set(wanted)
    for row in found:
        job = wanted[row["job_id"]]
        assert row["status"] == job.status
        for name in SAME:
            assert row[name] == getattr(job, name), (name, row)
        for name in ("created_at", "updated_at", "finished_at", "locked_until", "next_attempt_at"):
            moment = row[name] and row[name].strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            assert moment == getattr(job, name), (name, row)
        assert row["payload"] == job.payload_json and row["result"] == job.result_json


def require_same_cache_and_topics(warehouse: Warehouse, events: list[Event]) -> None:
    """The models `cache_history` and `topics` are what the fold leaves."""
    wanted = folded(events)
    cache = ops.cache_as_of(warehouse).select("key", "version", "value").rows()
    paused = warehouse.sql("select topic from topics where status = 'paused'").fetchall()
    assert {key: (version, json.loads(value)) for key, version, value in cache} == {
        entry.key: (entry.version, entry.value) for entry in wanted.entries.values()
    }
    assert {topic for (topic,) in paused} == {t for t, s in wanted.topics.items() if s == "paused"}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_models_leave_the_same_state_as_the_fold_of_the_runtime(
    tmp_path: Path, seed: int
) -> None:
    random_history(tmp_path, seed)
    with ops.open(tmp_path) as warehouse:
        require_same_jobs(warehouse, history(tmp_path))
        require_same_cache_and_topics(warehouse, history(tmp_path))


@dataclass
class SlowLease:
    """A lease as an obvious loop sees it."""

    worker: str
    leased_at: str
    locked_until: str
    how: str = "open"
    ended_at: str | None = None
    refused: int = 0


_ENDS = {"job.done": "done", "job.retry_scheduled": "retry", "job.dead": "dead",
         "job.snoozed": "snoozed", "job.released": "released"}  # fmt: skip


def slow_leases(events: list[Event]) -> dict[tuple[str, int], SlowLease]:
    leases: dict[tuple[str, int], SlowLease] = {}
    held: dict[str, int] = {}
    for event in events:
        job_id = event.get("job_id")
        if not job_id or not event.name.startswith("job."):
            continue
        token = event.get("lease_token", held.get(job_id))
        if event.name == "job.leased":
            leases[job_id, token] = SlowLease(
                event["worker"], event.occurred_at, event["locked_until"]
            )
            held[job_id] = token
        elif event.name == "job.extended":
            leases[job_id, token].locked_until = event["locked_until"]
        elif event.name == "job.settle_refused":
            leases[job_id, token].refused += 1
        else:
            _end(leases, held, job_id, token, event)
    return leases


def _end(leases: Any, held: dict[str, int], job_id: str, token: int | None, event: Event) -> None:
    how = _ENDS.get(event.name)
    if event.name == "job.lease_expired":
        how = event["reason"]
    if event.name == "job.cancelled" and job_id in held:
        how = "cancelled"
    if how and job_id in held:
        del held[job_id]
        leases[job_id, token].how, leases[job_id, token].ended_at = how, event.occurred_at


def require_same_leases(warehouse: Warehouse, events: list[Event]) -> None:
    """The model `leases` is what a slow loop over the events sees."""
    wanted = slow_leases(events)
    found = warehouse.sql("from leases").pl().to_dicts()
    assert {(row["job_id"], row["lease_token"]) for row in found} == set(wanted)
    for row in found:
        lease = wanted[row["job_id"], row["lease_token"]]
        assert (row["worker"], row["how"], row["refused"]) == (
            lease.worker, lease.how, lease.refused,
        ), (row, lease)  # fmt: skip
        for name in ("leased_at", "locked_until", "ended_at"):
            moment = row[name] and row[name].strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            assert moment == getattr(lease, name), (name, row)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_lease_model_equals_a_slow_loop_over_the_events(tmp_path: Path, seed: int) -> None:
    random_history(tmp_path, seed)
    with ops.open(tmp_path) as warehouse:
        require_same_leases(warehouse, history(tmp_path))


def test_wait_ends_where_the_handler_starts_and_counts_from_the_due_time(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("j1", 1.0, delay_ms=2000, next_attempt_at=text(3.0))
    log.leased("j1", 3.5)
    log.ended("job.retry_scheduled", "j1", 4.0, 4.5, delay_ms=0, next_attempt_at=text(4.5))
    log.leased("j1", 5.0, token=2)
    log.ended("job.done", "j1", 6.0, 6.25, token=2)
    with ops.open(tmp_path) as warehouse:
        found = warehouse.sql("select wait_s, run_s, total_s from jobs").fetchall()
        late = "select due_at - created_at = interval 2 second from jobs"
        assert warehouse.sql(late).fetchall() == [(True,)]
    assert found == [(1.0, 0.25, 3.25)]


def test_the_history_of_a_key_says_what_held_when_and_what_holds_now(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put("k", "a", 1)
    log.put("k", "b", 2)
    log.event("cache.invalidated", 3, key="k", reason="asked")
    log.put("other", "c", 4)
    with ops.open(tmp_path) as warehouse:
        held = "select change, held_until - occurred_at = interval 1 second, newest"
        found = warehouse.sql(f"{held} from cache_history where key = 'k' order by seq").fetchall()
        assert ops.overview(warehouse)["cache_keys"].item() == 1
    assert found == [("put", True, 3), ("put", True, 2), ("invalidated", None, 1)]


def test_events_stand_in_the_order_of_writers_then_seq_whatever_the_clock_says(
    tmp_path: Path,
) -> None:
    first = Log(tmp_path, "ffffffff" + "0" * 24, at=100)
    first.put("k", "old", 101)
    second = Log(tmp_path, "00000000" + "0" * 24, at=5, previous_writer=first.writer,
                 previous_seq=first.seq)  # fmt: skip
    second.put("k", "new", 6)
    with ops.open(tmp_path) as warehouse:
        order = warehouse.sql("select writer from events order by position").fetchall()
        assert ops.cache_as_of(warehouse)["value"].to_list() == ['"new"']
    assert [writer[0] for (writer,) in order] == ["f", "f", "0", "0"]


def test_an_id_of_digits_keeps_its_zeros_and_its_length(tmp_path: Path) -> None:
    Log(tmp_path).enqueued("007", 1, idempotency_key="12345678901234567890")
    with ops.open(tmp_path) as warehouse:
        found = warehouse.sql("select job_id, idempotency_key from jobs").fetchall()
    assert found == [("007", "12345678901234567890")]


def test_an_empty_log_gives_empty_answers_and_no_error(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    with ops.open(tmp_path) as warehouse:
        assert warehouse.notes == [] and warehouse.gaps.is_empty()
        assert ops.overview(warehouse)["events"].item() == 0
        assert ops.latency(warehouse)["n"].to_list() == [0]
        assert ops.throughput(warehouse)["arrivals"].to_list() == [0]
        assert ops.stuck_leases(warehouse).is_empty() and ops.trace(warehouse, "x").is_empty()


def test_values_reach_sql_as_parameters_only(tmp_path: Path) -> None:
    evil = "x' or 1=1; drop view jobs; --"
    Log(tmp_path).enqueued(evil, 1)
    with ops.open(tmp_path) as warehouse:
        assert ops.trace(warehouse, evil).height == 1
        assert ops.trace(warehouse, "' or ''='").is_empty()
        assert warehouse.sql("select count(*) from jobs where job_id = ?", [evil]).fetchall() == [
            (1,)
        ]


def test_writers_that_follow_the_same_one_keep_their_order_and_circles_end() -> None:
    assert order_writers([("a", None), ("b", "a"), ("c", "a"), ("d", "b")]) == ["a", "b", "d", "c"]
    assert order_writers([("new", "old"), ("old", None)]) == ["old", "new"]
    assert order_writers([("x", "y"), ("y", "x")]) == ["x", "y"]
    assert order_writers([("x", "unknown"), ("y", "x")]) == ["x", "y"]
