"""Handlers that do what no handler should: each costs an attempt of its job and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from core_steps import events

from tallybook import Book
from tallybook.errors import BadInput, Permanent, Retry, Snooze
from tallybook.job import Job
from tallybook.outcome import Outcome
from tallybook.payload import checked
from tallybook.worker import handlers
from tallybook.worker.context import Context
from tallybook.worker.handlers import registered
from tallybook.worker.loop import Worker
from tallybook.worker.metrics import Counters
from tallybook.worker.run import run


class Odd(BaseException):
    """No Exception."""


class Mute(Exception):
    """Its words cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Marked(Exception):
    """It has a field that looks like one of ours."""

    error_type = object()


def raising(error: BaseException) -> Callable[[Job], None]:
    def fail(job: Job) -> None:
        raise error

    return fail


def deep() -> Any:
    value: Any = 1
    for _ in range(50_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("error", "error_type"),
    [
        (SystemExit(3), "SystemExit"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (GeneratorExit(), "GeneratorExit"),
        (Odd("odd"), "Odd"),
        (Mute(), "Mute"),
        (Marked("m"), "Marked"),
        (Retry("r", after=float("nan")), "Retry"),
        (Retry("r", endpoint=object()), "Retry"),  # type: ignore[arg-type] # that is the mistake
        (Permanent("p", http_status=object()), "Permanent"),  # type: ignore[arg-type] # so is that
        (Snooze(float("inf")), "BadInput"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_whatever_a_handler_raises_is_a_failed_attempt_and_the_worker_goes_on(
    tmp_path: Path, error: BaseException, error_type: str
) -> None:
    root = tmp_path / "book"
    root.mkdir()
    (root / "book.toml").write_text("[topics.bad]\nmax_attempts = 1\n")
    with Book.open(root) as book:
        book.enqueue("bad", 1, priority=1)
        book.enqueue("good", 1)
    found = {"bad": registered(raising(error)), "good": registered(lambda job: job.payload)}
    Worker(root, found, threads=1, drain=True).run()
    with Book.read(root) as read:
        (job,) = read.jobs(topic="bad")
        assert (job.status, job.error_type) == ("dead", error_type)
        assert read.counts()["good"] == {"done": 1}


def test_an_interrupt_in_the_main_thread_is_a_persons_and_goes_through(book: Book) -> None:
    book.enqueue("a", 1)
    job = book.claim("w")
    assert job is not None and threading.current_thread() is threading.main_thread()
    with pytest.raises(KeyboardInterrupt):
        run(registered(raising(KeyboardInterrupt())), job, book, Counters())


def outcome_of(book: Book, function: Callable[..., Any]) -> Outcome:
    book.enqueue("a", 1)
    job = book.claim("w")
    assert job is not None
    return run(registered(function), job, book, Counters())[0]


def test_a_result_that_is_nested_too_deep_or_holds_itself_is_refused(book: Book) -> None:
    def endless(job: Job) -> Any:
        value: list[Any] = []
        value.append(value)
        return value

    for function in (lambda _: deep(), endless):
        outcome = outcome_of(book, function)
        assert (outcome.settle, outcome.error_type) == ("dead", "BadInput")
        assert "nested deeper than 100" in str(outcome.error)


def test_a_payload_may_be_nested_100_deep_and_no_deeper() -> None:
    value: Any = 1
    for _ in range(100):
        value = {"a": value}
    checked(value)
    with pytest.raises(BadInput, match="payload: nested deeper than 100 levels"):
        checked([value])


def test_facts_and_fields_that_are_no_json_are_refused_where_they_are_given(book: Book) -> None:
    def notes(job: Job, ctx: Context) -> None:
        ctx.note(endpoint=object())  # type: ignore[arg-type] # that is the mistake

    def puts(job: Job, ctx: Context) -> None:
        ctx.cache.put("k", 1, etag=object())

    assert "endpoint" in str(outcome_of(book, notes).error)
    assert "etag" in str(outcome_of(book, puts).error)
    assert not [e for e in events(book) if e["event"] == "cache.put"]


MODULES = {
    "leaves": ("import sys\nsys.exit(7)\n", "module 'leaves' raised SystemExit: 7"),
    "breaks": ("\n\n1 / 0\n", "module 'breaks' raised ZeroDivisionError: division by zero"),
    "lacks": ("from json import nothing_such\n", "module 'lacks' raised ImportError"),
    "bare": ("from tallybook import handler\n@handler\ndef f(job): ...\n", "write @handler(TOPIC)"),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_that_fails_at_import_is_named_with_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    text, told = MODULES[name]
    (tmp_path / f"gone_{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(handlers, "_handlers", {})
    with pytest.raises(BadInput) as caught:
        handlers.load(f"gone_{name}")
    line = {"leaves": 2, "breaks": 3, "lacks": 1, "bare": 2}[name]
    words = str(caught.value)
    assert told.replace(f"'{name}'", f"'gone_{name}'") in words
    assert f"gone_{name}.py line {line}" in words
    assert "\n" not in words


@pytest.mark.parametrize("module", ["./orders", "", "orders.py", "jobs/orders.py", ".orders"])
def test_a_path_in_place_of_a_module_gets_a_hint(module: str) -> None:
    with pytest.raises(BadInput, match=r"name a module as in 'import', such as 'orders'"):
        handlers.load(module)
