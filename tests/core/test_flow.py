"""How a job flows: enqueue, claim, settle, retry, dead letters, rescue, refusal."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from core_steps import claim, events, job_of, names, outcome, segments

from tallybook import Book
from tallybook.book import Held, New, Settled, Want
from tallybook.entry import Put
from tallybook.errors import BadInput, KeyConflict, LeaseLost
from tallybook.testing import FakeClock


def test_a_done_job_leaves_three_events_and_its_result(book: Book) -> None:
    receipt = book.enqueue("a", {"id": "007"})
    job = claim(book)
    book.settle(outcome(book, job, result={"ok": True}))
    assert names(book) == ["job.enqueued", "job.leased", "job.done"]
    done = job_of(book, receipt.job_id)
    assert (done.status, done.attempt_count, done.result_json) == ("done", 1, '{"ok":true}')


def test_claims_go_by_priority_then_due_time_then_age(book: Book, clock: FakeClock) -> None:
    first = book.enqueue("a", 1).job_id
    second = book.enqueue("a", 2).job_id
    late = book.enqueue("a", 3, delay_s=5).job_id
    urgent = book.enqueue("a", 4, priority=9).job_id
    assert [claim(book).job_id for _ in range(3)] == [urgent, first, second]
    assert book.claim("w1") is None
    clock.advance(5)
    assert claim(book).job_id == late


def test_a_delay_is_not_shortened_by_a_jump_of_the_wall_clock(book: Book, clock: FakeClock) -> None:
    book.enqueue("a", 1, delay_s=600)
    clock.jump(86_400)
    assert book.claim("w1") is None


def test_a_time_that_a_user_gave_is_wall_time(book: Book, clock: FakeClock) -> None:
    book.enqueue("a", 1, next_attempt_at=clock.moment().now + timedelta(hours=1))
    assert book.claim("w1") is None
    clock.jump(3600)
    assert claim(book).payload == 1


def test_same_key_and_payload_give_the_first_job_and_say_so(book: Book) -> None:
    first = book.enqueue("a", {"n": 1, "m": 2}, idempotency_key="k")
    again = book.enqueue("a", {"m": 2, "n": 1.0}, idempotency_key="k")
    assert again.job_id == first.job_id
    assert (first.is_new, again.is_new) == (True, False)
    assert names(book) == ["job.enqueued", "job.deduplicated"]


def test_same_key_and_another_payload_is_an_error_that_names_the_first(book: Book) -> None:
    first = book.enqueue("a", {"n": 1}, idempotency_key="k")
    with pytest.raises(KeyConflict, match=first.job_id):
        book.enqueue("a", {"n": 2}, idempotency_key="k")
    assert names(book) == ["job.enqueued"]


def test_a_job_without_a_key_carries_its_own_id_as_key(book: Book) -> None:
    receipt = book.enqueue("a", 1)
    assert job_of(book, receipt.job_id).idempotency_key == receipt.job_id


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ({"a": "x\0y"}, "NUL"),
        ({"a": ["\ud800"]}, "lone surrogate"),
        ({"a": float("nan")}, "no JSON number"),
        ({"a": 2**53 + 1}, "over 2\\^53"),
        ({"a": {1, 2}}, "set is no JSON value"),
        ({1: "a"}, "is not text"),
        ("x" * (1024 * 1024), "at most 1048576"),
    ],
)
def test_a_payload_that_cannot_be_kept_is_refused_before_anything_is_written(
    book: Book, payload: object, words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        book.enqueue("a", payload)
    assert names(book) == []


def test_a_retry_waits_longer_each_time_with_bounded_jitter(book: Book, clock: FakeClock) -> None:
    book.enqueue("a", 1)
    for due_s in (2, 4, 8):
        job = claim(book)
        event = book.settle(outcome(book, job, "retry", error_type="E", error="no"))[0]
        assert due_s * 1000 <= event["delay_ms"] <= due_s * 1200
        clock.advance(event["delay_ms"] / 1000 - 0.001)
        assert book.claim("w1") is None
        clock.advance(0.002)


def test_a_server_that_asks_for_more_time_gets_it(book: Book) -> None:
    book.enqueue("a", 1)
    event = book.settle(outcome(book, claim(book), "retry", after_s=77.0))[0]
    assert (event["delay_ms"], event["retry_after_ms"]) == (77_000, 77_000)


def test_a_job_out_of_attempts_is_dead_with_its_last_error(book: Book, clock: FakeClock) -> None:
    job_id = book.enqueue("a", 1).job_id
    for _ in range(10):
        job = claim(book)
        book.settle(outcome(book, job, "retry", error_type="E", error="still no"))
        clock.advance(400)
    dead = job_of(book, job_id)
    assert (dead.status, dead.attempt_count, dead.last_error) == ("dead", 10, "still no")
    assert events(book)[-1]["reason"] == "out_of_attempts"


def test_attempts_that_never_reached_the_server_kill_no_job(book: Book, clock: FakeClock) -> None:
    job_id = book.enqueue("a", 1).job_id
    for _ in range(50):
        book.settle(outcome(book, claim(book), "retry", counted=False))
        clock.advance(400)
    assert (job_of(book, job_id).status, job_of(book, job_id).attempt_count) == ("pending", 0)


def test_a_permanent_error_goes_straight_to_the_dead_letters(book: Book) -> None:
    job_id = book.enqueue("a", 1).job_id
    book.settle(outcome(book, claim(book), "dead", error_type="Permanent", error="too large"))
    assert job_of(book, job_id).status == "dead"


def test_a_snooze_is_later_and_not_counted(book: Book, clock: FakeClock) -> None:
    job_id = book.enqueue("a", 1).job_id
    book.settle(outcome(book, claim(book), "snooze", after_s=30.0))
    assert book.claim("w1") is None
    clock.advance(30)
    assert claim(book).attempt_count == 0
    assert job_of(book, job_id).status == "leased"


def test_a_late_result_is_refused_logged_and_changes_nothing(book: Book, clock: FakeClock) -> None:
    job_id = book.enqueue("a", 1).job_id
    slow = claim(book, "slow", lease_s=10)
    clock.advance(11)
    book.rescue()
    quick = claim(book, "quick")
    with pytest.raises(LeaseLost, match="quick has lease 2"):
        book.settle(outcome(book, slow, result="slow"), [Put("k", "slow")])
    book.settle(outcome(book, quick, result="quick"))
    assert job_of(book, job_id).result_json == '"quick"'
    assert book.entry("k") is None
    assert names(book) == [
        "job.enqueued", "job.leased", "job.lease_expired", "job.leased",
        "job.settle_refused", "job.done",
    ]  # fmt: skip


def test_a_settle_past_the_deadline_is_refused_even_where_nobody_rescued(
    book: Book, clock: FakeClock
) -> None:
    job_id = book.enqueue("a", 1).job_id
    job = claim(book, lease_s=10)
    clock.advance(10)
    with pytest.raises(LeaseLost):
        book.settle(outcome(book, job))
    assert job_of(book, job_id).status == "pending"
    assert names(book)[-2:] == ["job.lease_expired", "job.settle_refused"]


def test_an_extended_lease_outlives_its_first_deadline(book: Book, clock: FakeClock) -> None:
    book.enqueue("a", 1)
    job = claim(book, lease_s=10)
    for _ in range(5):
        clock.advance(6)
        assert book.extend([Held(job.job_id, job.lease_token)], "w1", 10) == []
        assert book.rescue() == []
    book.settle(outcome(book, job))
    assert names(book)[-1] == "job.done"


def test_a_lost_lease_cannot_be_extended_and_the_refusal_is_logged(
    book: Book, clock: FakeClock
) -> None:
    book.enqueue("a", 1)
    job = claim(book, lease_s=10)
    clock.advance(11)
    book.rescue()
    held = Held(job.job_id, job.lease_token)
    assert book.extend([held], "w1", 10) == [held]
    assert events(book)[-1]["settle"] == "extend"


def test_no_jump_of_the_wall_clock_ends_a_lease(book: Book, clock: FakeClock) -> None:
    book.enqueue("a", 1)
    job = claim(book, lease_s=10)
    clock.jump(7 * 86_400)
    assert book.rescue() == []
    clock.jump(-30 * 86_400)
    book.settle(outcome(book, job))
    assert names(book)[-1] == "job.done"


def test_after_a_reboot_every_older_lease_is_over(book: Book, clock: FakeClock) -> None:
    book.enqueue("a", 1)
    job = claim(book, lease_s=3600)
    clock.reboot()
    assert [event["reason"] for event in book.rescue()] == ["reboot"]
    with pytest.raises(LeaseLost):
        book.settle(outcome(book, job))


def test_after_a_reboot_what_is_due_is_claimed_by_whoever_comes_first(
    book: Book, clock: FakeClock
) -> None:
    book.enqueue("a", 1, delay_s=100)
    clock.reboot(seconds=200)
    assert claim(book).payload == 1


def test_a_process_that_was_open_before_others_began_the_boot_ends_no_lease(
    tmp_path: Path, clock: FakeClock
) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "book.toml").write_text("[log]\nsegment_bytes = 1024\n")
    with Book.open(tmp_path / "b", clock=clock) as first:
        first.enqueue("a", "x" * 1024)
    clock.reboot()
    with (
        Book.open(tmp_path / "b", clock=clock) as book,
        Book.open(book.layout.root, clock=clock) as late,
    ):
        job = claim(book)
        late.enqueue("a", "x" * 1024)
        late.enqueue("a", "in a new segment")
        assert len(segments(book)) == 3
        assert job_of(late, job.job_id) == job


def test_after_a_reboot_a_delay_is_counted_on_and_never_lengthened(
    book: Book, clock: FakeClock
) -> None:
    book.enqueue("a", 1, delay_s=100)
    clock.reboot(seconds=60)
    clock.jump(-86_400)
    book.enqueue("b", 2)
    assert claim(book).topic == "b"
    clock.advance(100)
    assert claim(book).topic == "a"


def test_a_job_that_outlives_its_workers_too_often_is_a_dead_letter(
    book: Book, clock: FakeClock
) -> None:
    job_id = book.enqueue("a", 1).job_id
    for _ in range(4):
        claim(book, lease_s=10)
        clock.advance(11)
        book.rescue()
    dead = job_of(book, job_id)
    assert (dead.status, dead.rescue_count, dead.attempt_count) == ("dead", 4, 0)
    assert events(book)[-1]["reason"] == "killed_workers"


def test_cache_writes_of_a_done_job_become_events_with_the_settle(book: Book) -> None:
    receipt = book.enqueue("a", 1)
    job = claim(book)
    book.settle(outcome(book, job), [Put("k", {"v": 1}, etag="e1", origin="cloud")])
    assert names(book)[-2:] == ["cache.put", "job.done"]
    entry = book.entry("k")
    assert entry is not None
    assert (entry.value, entry.version, entry.etag) == ({"v": 1}, 1, "e1")
    assert (entry.origin, entry.job_id) == ("cloud", receipt.job_id)


def test_a_failed_job_writes_no_cache(book: Book) -> None:
    book.enqueue("a", 1)
    book.settle(outcome(book, claim(book), "retry"), [Put("k", 1)])
    assert book.entry("k") is None


def test_a_book_that_is_only_read_has_no_changes(book: Book) -> None:
    book.enqueue("a", 1)
    with Book.read(book.layout.root) as reader:
        assert reader.counts() == {"a": {"pending": 1}}
        assert not hasattr(reader, "enqueue")


def test_a_folder_with_other_files_is_not_made_into_a_book(tmp_path: Path) -> None:
    (tmp_path / "thesis.doc").write_text("years of work")
    with pytest.raises(BadInput, match="other files"):
        Book.open(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.doc"]


def test_jobs_enqueued_together_are_all_taken_or_none(book: Book) -> None:
    with pytest.raises(KeyConflict):
        book.enqueue_many([New("a", 1, "k"), New("a", 2), New("a", 3, "k")])
    assert names(book) == []
    receipts = book.enqueue_many([New("a", 1, "k"), New("a", 2), New("a", 1, "k")])
    assert [receipt.is_new for receipt in receipts] == [True, True, False]
    assert receipts[0].job_id == receipts[2].job_id


def test_a_batch_is_claimed_and_settled_with_one_moment_each(book: Book) -> None:
    book.enqueue_many([New("a", number) for number in range(5)])
    first = book.claim_many(Want("w", limit=3))
    assert [job.payload for job in first] == [0, 1, 2]
    settled = [Settled(outcome(book, job), [Put("k", job.payload)]) for job in first]
    turn = book.turn(settled, Want("w", limit=9))
    assert [job.payload for job in turn.jobs] == [3, 4]
    assert turn.refused == {}
    entry = book.entry("k")
    assert entry is not None and (entry.value, entry.version) == (2, 3)
    assert book.counts() == {"a": {"done": 3, "leased": 2}}


def test_threads_that_enqueue_at_once_share_syncs_and_lose_nothing(book: Book) -> None:
    with ThreadPoolExecutor(16) as pool:
        receipts = list(pool.map(lambda n: book.enqueue("a", n), range(400)))
    assert len({receipt.job_id for receipt in receipts}) == 400
    seqs = [event["seq"] for event in events(book)]
    assert seqs == list(range(1, 402))
    assert len({event["occurred_at"] for event in events(book)}) == 1
