"""Ordering keys: one after the other, in the order in which they came, however a job ends."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from core_steps import claim, events, job_of, names, outcome
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from order_steps import require_order
from test_claiming import MOST_STEPS, steps_of
from test_fold import live, live_a_little, with_rules

from tallybook import Book
from tallybook.book import Held, New, Settled, Want
from tallybook.errors import BadInput
from tallybook.job import Job
from tallybook.testing import FakeClock


def line(book: Book, jobs: int, topic: str = "a", key: str = "k") -> list[str]:
    """Enqueue jobs of one ordering key."""
    new = [New(topic, number, ordering_key=key) for number in range(jobs)]
    return [receipt.job_id for receipt in book.enqueue_many(new)]


def due(book: Book, limit: int = 100) -> list[str]:
    """What a worker would get, and gives back."""
    jobs = book.turn((), Want("looks", (), 60, limit)).jobs
    book.release([Held(job.job_id, job.lease_token) for job in jobs], "looked")
    return [job.job_id for job in jobs]


def skipping(place: Path) -> Path:
    """A folder for a book whose topic ``b`` skips the dead."""
    place.mkdir()
    (place / "book.toml").write_text('[topics.b]\nordering = "skip"\n')
    return place


def settle(book: Book, how: str, **fields: float) -> Job:
    """Claim the next job and end it."""
    job = claim(book)
    book.settle(outcome(book, job, how, **fields))
    return job_of(book, job.job_id)


def test_jobs_of_a_key_are_claimed_one_by_one_in_the_order_of_their_enqueue(book: Book) -> None:
    first, second, third = line(book, 3)
    other = line(book, 1, key="other") + line(book, 1, topic="b")
    assert set(due(book)) == {first, *other}
    assert [settle(book, "done").job_id, settle(book, "done").job_id] == [first, second]
    assert due(book, 1) == [third]


def test_a_later_job_does_not_pass_by_its_priority(book: Book) -> None:
    first = book.enqueue("a", 1, ordering_key="k").job_id
    book.enqueue("a", 2, ordering_key="k", priority=9)
    assert due(book) == [first]


def test_a_job_waits_while_an_earlier_one_is_delayed_or_retried(
    book: Book, clock: FakeClock
) -> None:
    first = book.enqueue("a", 1, ordering_key="k", delay_s=5).job_id
    second = book.enqueue("a", 2, ordering_key="k").job_id
    assert due(book) == []
    clock.advance(5)
    assert settle(book, "retry", after_s=30.0).job_id == first
    clock.advance(29)
    assert due(book) == []
    clock.advance(20)
    assert settle(book, "done").job_id == first
    assert due(book) == [second]


def test_what_a_settle_lets_through_is_claimed_in_the_same_change(book: Book) -> None:
    first, second = line(book, 2)
    job = claim(book)
    turn = book.turn([Settled(outcome(book, job))], Want("w1"))
    assert (job.job_id, [job.job_id for job in turn.jobs]) == (first, [second])


def test_a_dead_job_holds_up_its_key_until_it_is_discarded(book: Book) -> None:
    first, second = line(book, 2)
    settle(book, "dead")
    assert due(book) == []
    assert (job_of(book, second).waits_for, book.in_the_way(job_of(book, second))) == (
        "ordering_key", job_of(book, first),
    )  # fmt: skip
    book.steer("discard", [first], "by hand")
    assert due(book) == [second]


def test_a_dead_job_that_is_requeued_comes_first_again(book: Book) -> None:
    first, second = line(book, 2)
    settle(book, "dead")
    book.steer("requeue", [first], "by hand")
    assert [settle(book, "done").job_id, due(book)] == [first, [second]]


def test_a_key_that_skips_the_dead_goes_on_and_one_that_comes_back_takes_its_place(
    tmp_path: Path, clock: FakeClock
) -> None:
    with Book.open(skipping(tmp_path / "b"), clock=clock) as book:
        first, second, third = line(book, 3, topic="b")
        assert settle(book, "dead").line == 0
        assert [e.get("ordering") for e in events(book) if e["event"] == "job.dead"] == ["skip"]
        job = claim(book)
        assert job.job_id == second
        book.steer("requeue", [first], "by hand")
        assert due(book) == []
        book.settle(outcome(book, job))
        assert settle(book, "done").job_id == first
        assert due(book, 1) == [third]


def test_a_job_that_is_cancelled_is_waited_for_no_longer(book: Book) -> None:
    first, second = line(book, 2)
    book.steer("cancel", [first], "by hand")
    assert due(book) == [second]


def test_a_job_that_expires_dies_and_so_holds_or_is_skipped(
    tmp_path: Path, clock: FakeClock
) -> None:
    with Book.open(skipping(tmp_path / "b"), clock=clock) as book:
        for topic in "ab":
            book.enqueue(topic, 1, ordering_key="k", expires_after_s=1)
        _, second = (book.enqueue(topic, 2, ordering_key="k").job_id for topic in "ab")
        clock.advance(2)
        book.expire()
        assert due(book) == [second]


def test_a_dead_letter_that_is_pruned_holds_up_nobody(tmp_path: Path, clock: FakeClock) -> None:
    root = tmp_path / "b"
    root.mkdir()
    (root / "book.toml").write_text("[topics.a]\nkeep_dead_s = 1\ndedupe_window_s = 0\n")
    with Book.open(root, clock=clock) as book:
        _, second = line(book, 2)
        settle(book, "dead")
        clock.advance(2)
        book.prune()
        assert due(book) == [second]


def test_a_worker_that_dies_leaves_its_job_at_the_front(book: Book) -> None:
    first, _ = line(book, 2)
    claim(book, "dies")
    book.rescue_of("dies")
    assert due(book) == [first]


def test_keep_latest_supersedes_what_is_pending_and_says_so(book: Book) -> None:
    running, *old = line(book, 3)
    claim(book)
    receipt = book.enqueue("a", "new", ordering_key="k", keep_latest=True)
    assert receipt.superseded == tuple(old)
    assert {job_of(book, job_id).status for job_id in old} == {"cancelled"}
    assert job_of(book, running).status == "leased"
    told = [e for e in events(book) if e["event"] == "job.cancelled"]
    assert [(e["reason"], e["superseded_by"]) for e in told] == [("superseded", receipt.job_id)] * 2
    payloads = [e["payload"] for e in events(book) if e["event"] == "job.enqueued"]
    assert payloads == [0, 1, 2, "new"]


def test_the_latest_of_one_batch_is_kept_and_each_receipt_names_its_own(book: Book) -> None:
    new = [New("a", n, ordering_key="k", keep_latest=n > 0) for n in range(3)]
    first, second, third = book.enqueue_many(new)
    assert (second.superseded, third.superseded) == ((first.job_id,), (second.job_id,))
    assert due(book) == [third.job_id]
    assert names(book)[:5] == [
        "job.enqueued", "job.enqueued", "job.cancelled", "job.enqueued", "job.cancelled",
    ]  # fmt: skip


def test_a_job_that_is_there_already_supersedes_nothing(book: Book) -> None:
    wish = {"ordering_key": "k", "idempotency_key": "same", "keep_latest": True}
    book.enqueue("a", 1, **wish)
    after = book.enqueue("a", 2, ordering_key="k").job_id
    again = book.enqueue("a", 1, **wish)
    assert (again.is_new, again.superseded) == (False, ())
    assert job_of(book, after).status == "pending"


def test_keep_latest_asks_for_an_ordering_key(book: Book) -> None:
    with pytest.raises(BadInput, match="ordering key"):
        book.enqueue("a", 1, keep_latest=True)


def test_a_hundred_thousand_keys_or_jobs_behind_one_make_no_step_dearer(book: Book) -> None:
    for start in range(0, 3000, 1000):
        book.enqueue_many([New("a", n, ordering_key=f"k{start + n}") for n in range(1000)])
    line(book, 3000, topic="b")

    def turns() -> None:
        (job,) = book.turn((), Want("w", ("b",))).jobs
        assert book.turn([Settled(outcome(book, job))], Want("w", ("b",))).jobs

    steps: list[Callable[[], object]] = [
        turns,
        lambda: claim(book),
        lambda: book.enqueue("b", 1, ordering_key="k"),
        lambda: book.enqueue("a", 1, ordering_key="k17"),
    ]
    assert [steps_of(book, step) < MOST_STEPS for step in steps] == [True] * 4


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**9))
def test_a_state_that_lags_behind_catches_up_with_all_places_lines_and_locks(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    root, clock = with_rules(tmp_path_factory.mktemp("lag") / "book"), FakeClock()
    aside = root.parent / "old.db"
    with Book.open(root, clock=clock) as book:
        live_a_little(book, clock, random.Random(seed), 40)  # noqa: S311
        book._journal._store.connection.execute("vacuum into ?", (str(aside),))
        live_a_little(book, clock, random.Random(seed + 1), 40)  # noqa: S311
        wanted = live(book)
    for path in root.glob("state.db*"):
        path.unlink()
    aside.replace(root / "state.db")
    with Book.open(root, clock=clock) as book:
        assert live(book) == wanted
        require_order(book)


def test_a_state_that_lags_behind_lets_nobody_pass_who_has_lost_the_front(tmp_path: Path) -> None:
    root, aside = tmp_path / "lag", tmp_path / "old.db"
    with Book.open(root) as book:
        first, second = line(book, 2)
        book.steer("cancel", [first], "by hand")
        book._journal._store.connection.execute("vacuum into ?", (str(aside),))
        book.steer("requeue", [first], "by hand")
        assert claim(book).job_id == first
    for path in root.glob("state.db*"):
        path.unlink()
    aside.replace(root / "state.db")
    with Book.open(root) as book:
        assert job_of(book, second).waits_for == "ordering_key"
        assert book.claim("w2") is None


def test_a_schedule_in_the_past_is_due_at_once(book: Book, clock: FakeClock) -> None:
    past = clock.moment().now - timedelta(days=400)
    job_id = book.enqueue("a", 1, next_attempt_at=past).job_id
    assert due(book) == [job_id]
