"""What a handler is given: typed payloads, a logger, its lease, the cache."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from core_steps import claim, events, job_of

from tallybook import Book
from tallybook.errors import BadInput, LeaseLost
from tallybook.job import Job
from tallybook.testing import FakeClock
from tallybook.worker import handlers
from tallybook.worker.context import Context
from tallybook.worker.handlers import registered
from tallybook.worker.metrics import Counters
from tallybook.worker.run import run


@dataclass
class Line:
    item: str
    number: int = 1


@dataclass
class Order:
    id: str
    lines: list[Line] = field(default_factory=list)
    note: str | None = None
    price: float = 0.0


@pytest.fixture(autouse=True)
def _own_register(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(handlers, "_handlers", {})
    yield


def outcome_of(book: Book, function: handlers.Function, payload: object, kind: type) -> object:
    """Run one job; returns its outcome."""
    book.enqueue("a", payload)
    return run(registered(function, kind), claim(book), book, Counters())[0]


def test_a_payload_comes_as_the_type_that_the_user_gave(book: Book) -> None:
    seen: list[Order] = []

    def take(job: Job) -> None:
        seen.append(job.payload)

    payload = {"id": "007", "lines": [{"item": "tea"}], "price": 3}
    outcome_of(book, take, payload, Order)
    assert seen == [Order("007", [Line("tea")], None, 3.0)]


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ([1], "payload is list, not an object"),
        ({}, "payload.id is missing"),
        ({"id": 7}, "payload.id is int, not str"),
        ({"id": "7", "colour": "red"}, "payload.colour is no field"),
        ({"id": "7", "lines": [{"item": "tea", "number": True}]}, "lines[0].number is bool"),
        ({"id": "7", "note": 3}, "payload.note is int, not str"),
    ],
)
def test_a_payload_that_does_not_fit_its_type_is_a_dead_letter_that_says_where(
    book: Book, payload: object, words: str
) -> None:
    found = outcome_of(book, lambda job: job.payload, payload, Order)
    assert isinstance(found, handlers.Registered) is False
    assert getattr(found, "settle", None) == "dead"
    assert words in str(getattr(found, "error", ""))


def test_two_handlers_for_one_topic_are_refused_and_both_are_named() -> None:
    def first(job: Job) -> None: ...
    def second(job: Job) -> None: ...

    handlers.handler("a")(first)
    handlers.handler("a")(first)
    with pytest.raises(BadInput, match=r"two handlers for topic a: .*first.* and .*second"):
        handlers.handler("a")(second)


def test_lines_of_the_logger_begin_with_job_and_correlation_id(
    book: Book, caplog: pytest.LogCaptureFixture
) -> None:
    def tell(job: Job, ctx: Context) -> None:
        ctx.log.warning("paid %s", "twice")

    book.enqueue("a", 1, correlation_id="req-9")
    job = claim(book)
    with caplog.at_level(logging.WARNING, "tallybook.job"):
        run(registered(tell), job, book, Counters())
    (record,) = caplog.records
    assert record.getMessage() == f"[{job.job_id} req-9] paid twice"
    assert (record.__dict__["job_id"], record.__dict__["correlation_id"]) == (job.job_id, "req-9")


def test_a_handler_extends_its_lease_and_is_told_when_that_is_too_late(
    book: Book, clock: FakeClock
) -> None:
    def work(job: Job, ctx: Context) -> None:
        ctx.extend(500)
        clock.advance(499)
        ctx.extend(10)
        clock.advance(11)
        ctx.extend(10)

    book.enqueue("a", 1)
    job = claim(book, lease_s=10)
    outcome = run(registered(work), job, book, Counters())[0]
    assert (outcome.settle, outcome.error_type) == ("retry", LeaseLost.__name__)
    assert [event["event"] for event in events(book)][-3:] == [
        "job.extended", "job.extended", "job.settle_refused",
    ]  # fmt: skip


def test_a_coroutine_is_cancelled_when_its_lease_is_lost(book: Book) -> None:
    reached: list[str] = []

    async def work(job: Job, ctx: Context) -> None:
        assert ctx.cancelled is False
        held.clear()
        await asyncio.sleep(60)
        reached.append("the end")

    held = [True]
    book.enqueue("a", 1)
    job = claim(book)
    outcome = run(registered(work), job, book, Counters(), lambda: bool(held))[0]
    assert (outcome.settle, outcome.error_type, reached) == ("retry", "CancelledError", [])


def test_a_handler_that_calls_exit_is_a_failed_attempt_not_the_end_of_the_worker(
    book: Book,
) -> None:
    def leave(job: Job) -> None:
        raise SystemExit(3)

    book.enqueue("a", 1)
    outcome = run(registered(leave), claim(book), book, Counters())[0]
    assert (outcome.settle, outcome.error_type) == ("retry", "SystemExit")


def test_a_write_to_the_cache_that_cannot_be_kept_fails_at_once(book: Book) -> None:
    def write(job: Job, ctx: Context) -> None:
        ctx.cache.put("k", float("inf"))

    receipt = book.enqueue("a", 1)
    outcome, puts = run(registered(write), claim(book), book, Counters())
    assert (outcome.settle, list(puts)) == ("dead", [])
    assert job_of(book, receipt.job_id).status == "leased"


def test_the_place_of_a_handlers_module_is_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken_handlers.py").write_text("def x(:\n")
    with pytest.raises(BadInput, match=r"broken_handlers\.py line 1"):
        handlers.load("broken_handlers")
    (tmp_path / "needy_handlers.py").write_text("import no_such_package\n")
    with pytest.raises(BadInput, match="needs 'no_such_package'"):
        handlers.load("needy_handlers")
