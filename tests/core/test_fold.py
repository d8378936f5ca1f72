"""The fold: live tables, a replay and a fold of the whole log agree, wherever the log is cut."""

from __future__ import annotations

import random
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from core_steps import outcome, segments
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from order_steps import require_order

from tallybook import Book
from tallybook.book import Held
from tallybook.book.folding import fold_history
from tallybook.entry import Entry, Put
from tallybook.errors import FoldRefused, LeaseLost
from tallybook.event import Event
from tallybook.fold import MemoryTables, apply
from tallybook.job import Job
from tallybook.layout import Layout
from tallybook.log.reader import history
from tallybook.order import Lock
from tallybook.testing import FakeClock

Tables = tuple[dict[str, Job], dict[str, Entry], dict[str, Lock], dict[str, int]]
TOML = """
[topics.b]
ordering = "skip"
max_attempts = 1
max_running = 3
rate_per_s = 0.5
rate_burst = 2
"""


def live(book: Book) -> Tables:
    """What state.db holds."""
    jobs = {job.job_id: job for job in book.jobs(limit=10**6)}
    locks = {held.lock.resource: held.lock for held in book.locks(10**6)}
    buckets = book._journal._store.queue.ordering.buckets()
    return jobs, {entry.key: entry for entry in book.entries(10**6)}, locks, buckets


def folded(layout: Layout) -> Tables:
    """What the log alone says."""
    tables, _ = fold_history(layout)
    return tables.jobs, tables.entries, tables.locks, tables.buckets


def with_rules(root: Path) -> Path:
    """A folder for a book with a limited topic."""
    root.mkdir(parents=True)
    (root / "book.toml").write_text(TOML)
    return root


def live_a_little(book: Book, clock: FakeClock, dice: random.Random, steps: int) -> None:
    """A random history: every kind of change that the runtime makes."""
    held: list[Job] = []
    for step in range(steps):
        kind = dice.choice(["enqueue", "claim", "settle"] * 3 + ["time", "time", "steer"])
        if kind == "enqueue":
            key = dice.choice([None, f"k{step}"])
            delay = dice.choice([None, 5.0])
            expires = dice.choice([None, None, 45.0])
            book.enqueue(
                dice.choice("aab"),
                {"n": step},
                idempotency_key=key,
                delay_s=delay,
                expires_after_s=expires,
                **in_order(dice),
            )
        elif kind == "claim":
            job = book.claim(dice.choice(["w1", "w2"]), lease_s=30)
            held += [job] if job else []
        elif kind == "settle" and held:
            settle_one(book, dice, held.pop(dice.randrange(len(held))))
        elif kind == "steer":
            steer_one(book, dice)
        else:
            clock.advance(dice.choice([1, 20, 40]))
            dice.choice([book.rescue, book.expire, lambda: None])()
            if dice.random() < 0.1:
                clock.reboot()
        if step % 8 == 0:
            require_order(book)


def in_order(dice: random.Random) -> dict[str, Any]:
    """An ordering key or a resource, or both, or none."""
    wish: dict[str, Any] = {"resource": dice.choice([None, None, "r", "s"])}
    key = dice.choice([None, "o", "p"])
    return wish | ({"ordering_key": key, "keep_latest": dice.random() < 0.2} if key else {})


def steer_one(book: Book, dice: random.Random) -> None:
    """Requeue, discard or cancel a job, or pause or resume its topic."""
    jobs = book.jobs(limit=1000)
    if jobs and dice.random() < 0.8:
        rule = dice.choice(["requeue", "discard", "cancel"])
        book.steer(rule, [dice.choice(jobs).job_id], "by hand")
    else:
        dice.choice([book.pause, book.resume, book.resume])("a", "by hand")


def changed_columns(row: Job | Entry) -> set[str]:
    """The columns of a row that are not at their default."""
    if isinstance(row, Job):
        defaults = Job._field_defaults
        return {name for name in Job._fields if getattr(row, name) != defaults.get(name)}
    return {f.name for f in fields(row) if getattr(row, f.name) != f.default}


def settle_one(book: Book, dice: random.Random, job: Job) -> None:
    """End a lease in a random way, or extend it first."""
    if dice.random() < 0.3:
        book.extend([Held(job.job_id, job.lease_token)], job.locked_by or "", 30)
    kind = dice.choice(["done", "retry", "dead", "snooze"])
    puts = [Put(f"key-{dice.randrange(3)}", {"by": job.job_id})]
    try:
        book.settle(outcome(book, job, kind, error="é", after_s=3.0), puts)
    except LeaseLost:
        held = book.job(job.job_id)
        assert held is not None and held.lease_token >= job.lease_token


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**9), share=st.floats(0, 1))
def test_any_history_cut_at_any_byte_replays_to_what_its_whole_lines_say(
    tmp_path_factory: pytest.TempPathFactory, seed: int, share: float
) -> None:
    root = with_rules(tmp_path_factory.mktemp("fold") / "book")
    clock = FakeClock()
    with Book.open(root, clock=clock) as book:
        live_a_little(book, clock, random.Random(seed), 40)  # noqa: S311
        assert live(book) == folded(book.layout)
    last = segments(root)[-1:]
    for path in last:
        with path.open("r+b") as file:
            file.truncate(round(path.stat().st_size * share))
    left = folded(Layout(root)) if segments(root) else ({}, {}, {}, {})
    with Book.open(root, clock=clock) as again:
        assert live(again) == left
        require_order(again)
    shutil.rmtree(root.parent)


def test_a_state_that_is_behind_the_log_catches_up_on_open(book: Book, tmp_path: Path) -> None:
    book.enqueue("a", 1)
    aside = tmp_path / "old.db"
    with Book.read(book.layout.root):
        book._journal._store.connection.execute("vacuum into ?", (str(aside),))
    book.enqueue("a", 2)
    book.close()
    for suffix in ("-wal", "-shm"):
        book.layout.state.with_name(f"state.db{suffix}").unlink(missing_ok=True)
    aside.replace(book.layout.state)
    with Book.open(book.layout.root) as again:
        assert again.counts() == {"a": {"pending": 2}}


def test_a_lost_state_is_folded_anew_from_the_log(tmp_path: Path, clock: FakeClock) -> None:
    root = with_rules(tmp_path / "b")
    with Book.open(root, clock=clock) as first:
        live_a_little(first, clock, random.Random(7), 120)  # noqa: S311
        before = live(first)
    for path in root.glob("state.db*"):
        path.unlink()
    with Book.open(root, clock=clock) as again:
        assert live(again) == before


def test_a_state_deleted_under_a_running_process_is_made_again(book: Book) -> None:
    book.enqueue("a", 1)
    for path in book.layout.root.glob("state.db*"):
        path.unlink()
    book.enqueue("a", 2)
    assert book.counts() == {"a": {"pending": 2}}
    assert book.layout.state.exists()


def test_every_column_of_every_table_comes_from_events(tmp_path: Path, clock: FakeClock) -> None:
    seen: dict[type, set[str]] = {Job: set(), Entry: set()}
    root = tmp_path / "b"
    with Book.open(root, clock=clock) as book:
        book.enqueue(
            "a", {"n": 1}, priority=3, delay_s=1, correlation_id="c", enqueued_from="POST /x",
 idempotency_key="k",
        )  # fmt: skip
        book.enqueue("a", 2, next_attempt_at=clock.moment().now)
        live_a_little(book, clock, random.Random(3), 120)  # noqa: S311
        book.resume("a", "by hand")
        book.enqueue("b", 1)
        held = list(iter(lambda: book.claim("w3"), None))
        book.steer("cancel", [held[0].job_id], "by hand")
        book.settle(outcome(book, held[0], "retry", error="e", error_type="E"))
        tables = MemoryTables()
        for event, position in history(book.layout):
            apply(tables, event, position.ordinal)
            for row in (*tables.jobs.values(), *tables.entries.values()):
                seen[type(row)] |= changed_columns(row)
    later = {"expires_at", "timeout_s", "max_attempts", "result_json"}
    assert set(Job._fields) - seen[Job] <= later
    written_elsewhere = {
        "base_version", "etag", "last_modified", "origin", "pending", "ttl_s", "depends_on",
        "value_schema", "synced_at", "boot_us", "boot_id",
    }  # fmt: skip
    assert {f.name for f in fields(Entry)} - seen[Entry] <= written_elsewhere


def test_the_fields_of_an_enqueue_and_a_put_reach_their_columns(book: Book) -> None:
    put = Put(
        "k", 1, version=4, base_version=3, etag="e", last_modified="m", origin="cloud",
        pending=True, ttl_s=5.0, depends_on=("x", "y"), value_schema="s", synced_at="t",
    )  # fmt: skip
    tables = MemoryTables()
    apply(tables, put.event(None, "job-1"), 1)
    entry = tables.entries["k"]
    for field in fields(put):
        name = "value_json" if field.name == "value" else field.name
        wanted = "1" if field.name == "value" else getattr(put, field.name)
        assert getattr(entry, name) == wanted
    made = {
        "job_id": "j", "topic": "a", "payload_digest": "d", "idempotency_key": "k",
        "expires_at": "2026-01-01T00:00:00.000000Z", "timeout_s": 5.0, "max_attempts": 2,
        "resource": "r", "ordering_key": "o",
    }  # fmt: skip
    apply(tables, Event("job.enqueued", made), 2)
    job = tables.jobs["j"]
    assert (job.expires_at, job.timeout_s, job.max_attempts) == (made["expires_at"], 5.0, 2)
    assert (job.resource, job.ordering_key) == ("r", "o")


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Event("job.exploded", {"job_id": "j"}), "not known"),
        (Event("job.done", {"job_id": "nobody", "lease_token": 1}), "no such job"),
        (Event("job.done", {"job_id": "j", "lease_token": 0}), "it is pending"),
        (Event("job.leased", {"job_id": "j", "lease_token": 5}), "where lease 1 is due"),
        (Event("job.leased", {"job_id": "j", "lease_token": 1}), "wrong field"),
    ],
)
def test_an_event_that_does_not_fit_is_refused_and_named(event: Event, words: str) -> None:
    tables = MemoryTables()
    made = {"job_id": "j", "topic": "a", "payload_digest": "d", "idempotency_key": "k"}
    apply(tables, Event("job.enqueued", made), 1)
    with pytest.raises(FoldRefused, match=words):
        apply(tables, event, 2)
