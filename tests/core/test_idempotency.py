"""Idempotency keys: which payloads are the same, how long a key is held, two at once."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from core_steps import claim, events, job_of, outcome

from tallybook import Book
from tallybook.errors import KeyConflict
from tallybook.testing import FakeClock

WINDOW_S = 86400


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"a": 1, "b": [1, 2]}, {"b": [1, 2], "a": 1}),
        ({"n": 1}, {"n": 1.0}),
        ({"n": [100, {"m": 0}]}, {"n": [1e2, {"m": -0.0}]}),
        (2, 2.0),
        ([2**53, -(2**53)], [float(2**53), -float(2**53)]),
    ],
)
def test_payloads_that_differ_in_form_alone_are_the_same(
    book: Book, first: Any, second: Any
) -> None:
    job_id = book.enqueue("a", first, idempotency_key="k").job_id
    again = book.enqueue("a", second, idempotency_key="k")
    assert (again.job_id, again.is_new) == (job_id, False)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([1, 2], [2, 1]),
        ({"n": 1}, {"n": "1"}),
        ({"n": 1}, {"n": True}),
        ({"n": None}, {}),
        ({"n": 1}, {"n": 1.5}),
        (unicodedata.normalize("NFC", "café"), unicodedata.normalize("NFD", "café")),
    ],
)
def test_payloads_that_differ_are_refused_and_the_first_job_is_named(
    book: Book, first: Any, second: Any
) -> None:
    job_id = book.enqueue("a", first, idempotency_key="k").job_id
    with pytest.raises(KeyConflict, match=job_id):
        book.enqueue("a", second, idempotency_key="k")


def test_keys_are_compared_without_unicode_normalisation(book: Book) -> None:
    book.enqueue("a", 1, idempotency_key=unicodedata.normalize("NFC", "é"))
    assert book.enqueue("a", 1, idempotency_key=unicodedata.normalize("NFD", "é")).is_new


def ended(book: Book, settle: str = "done") -> str:
    """A job with the key k that has ended."""
    job_id = book.enqueue("a", 1, idempotency_key="k").job_id
    book.settle(outcome(book, claim(book), settle))
    return job_id


@pytest.mark.parametrize("settle", ["done", "dead"])
def test_a_job_that_has_ended_holds_its_key_for_the_window_only(
    book: Book, clock: FakeClock, settle: str
) -> None:
    first = ended(book, settle)
    clock.advance(WINDOW_S - 1)
    assert book.enqueue("a", 1, idempotency_key="k").job_id == first
    clock.advance(1)
    second = book.enqueue("a", {"other": True}, idempotency_key="k")
    assert second.is_new
    assert job_of(book, first).idempotency_key == job_of(book, second.job_id).idempotency_key
    assert book.enqueue("a", {"other": True}, idempotency_key="k").job_id == second.job_id


def test_an_open_job_holds_its_key_for_ever(book: Book, clock: FakeClock) -> None:
    first = book.enqueue("a", 1, idempotency_key="k").job_id
    clock.advance(30 * WINDOW_S)
    assert book.enqueue("a", 1, idempotency_key="k").job_id == first


def test_the_window_follows_boot_time_and_goes_on_over_a_reboot(
    book: Book, clock: FakeClock
) -> None:
    first = ended(book)
    clock.jump(10 * WINDOW_S)
    assert book.enqueue("a", 1, idempotency_key="k").job_id == first
    clock.jump(-10 * WINDOW_S)
    clock.advance(WINDOW_S / 2)
    clock.reboot(60)
    assert book.enqueue("a", 1, idempotency_key="k").job_id == first
    clock.advance(WINDOW_S / 2)
    assert book.enqueue("a", 1, idempotency_key="k").is_new


def test_a_window_of_a_topic_is_its_own(tmp_path: Path, clock: FakeClock) -> None:
    root = tmp_path / "book"
    root.mkdir()
    (root / "book.toml").write_text("[topics.a]\ndedupe_window_s = 0\n")
    with Book.open(root, clock=clock) as book:
        ended(book)
        assert book.enqueue("a", 1, idempotency_key="k").is_new


def test_jobs_of_one_key_survive_a_fold_anew(book: Book, clock: FakeClock) -> None:
    ended(book)
    clock.advance(WINDOW_S)
    second = book.enqueue("a", 1, idempotency_key="k").job_id
    for path in book.layout.root.glob("state.db*"):
        path.unlink()
    assert book.enqueue("a", 1, idempotency_key="k").job_id == second


def test_of_two_jobs_with_one_key_the_open_one_counts(book: Book, clock: FakeClock) -> None:
    first = ended(book, "dead")
    clock.advance(WINDOW_S)
    second = book.enqueue("a", 1, idempotency_key="k").job_id
    book.steer("cancel", [second], "by hand")
    book.steer("requeue", [first], "by hand")
    assert book.enqueue("a", 1, idempotency_key="k").job_id == first


def test_a_handler_that_runs_twice_enqueues_its_follower_once(book: Book, clock: FakeClock) -> None:
    book.enqueue("long", 1, idempotency_key="order-1")
    for worker in ("first", "second"):
        job = claim(book, worker)
        book.enqueue("follower", job.payload, idempotency_key=f"after-{job.idempotency_key}")
        clock.advance(61)
        book.rescue()
    assert book.counts()["follower"]["pending"] == 1


CHILD = """
import sys
from tallybook import Book
with Book.open(sys.argv[1]) as book:
    print(sum(book.enqueue("a", n, idempotency_key=f"k{n}").is_new for n in range(40)))
"""


def test_two_processes_that_enqueue_the_same_keys_make_each_job_once(tmp_path: Path) -> None:
    root = tmp_path / "book"
    Book.open(root).close()
    command = [sys.executable, "-c", CHILD, str(root)]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    new = [int(child.communicate(timeout=60)[0]) for child in children]
    assert sum(new) == 40
    named = [event["event"] for event in events(root)]
    assert (named.count("job.enqueued"), named.count("job.deduplicated")) == (40, 40)
