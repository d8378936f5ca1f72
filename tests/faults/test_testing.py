"""``tallybook.testing``: what it promises to the tests of others."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from core_steps import outcome

from tallybook import Book, Permanent, Retry
from tallybook.errors import BadInput, TallybookError
from tallybook.layout import Layout
from tallybook.testing import (
    POINTS,
    Crashed,
    FakeClock,
    Fault,
    audit,
    crash_at,
    dice_faults,
    environment,
    faults,
    run_inline,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "book"


def test_inline_runs_what_is_due_in_claim_order_and_leaves_the_rest(root: Path) -> None:
    seen: list[Any] = []

    def work(job: Any, ctx: Any) -> None:
        seen.append(job.payload)
        if job.payload == "once more" and job.attempt_count == 0:
            raise Retry("later")
        if job.payload == "never":
            raise Permanent("no")
        ctx.cache.put("last", job.payload)

    clock = FakeClock()
    with Book.open(root, clock=clock) as book:
        book.enqueue("a", "once more")
        book.enqueue("a", "never")
        book.enqueue("a", "first", priority=5)
        book.enqueue("a", "in a minute", delay_s=60)
        book.enqueue("b", "of another topic")
        assert run_inline(book, {"a": work}) == ["job.done", "job.retry_scheduled", "job.dead"]
        assert seen == ["first", "once more", "never"]
        clock.advance(61)
        assert run_inline(book, {"a": work}) == ["job.done", "job.done"]
        entry = book.entry("last")
        assert entry is not None and entry.value in ("once more", "in a minute")
        assert book.counts() == {"a": {"dead": 1, "done": 3}, "b": {"pending": 1}}


def test_inline_ends_with_an_error_where_jobs_make_jobs_for_ever(root: Path) -> None:
    with Book.open(root) as book:

        def again(job: Any) -> None:
            book.enqueue("a", 1)

        book.enqueue("a", 0)
        with pytest.raises(TallybookError, match="20 runs and jobs are still due"):
            run_inline(book, {"a": again}, limit=20)


@pytest.mark.parametrize("point", ["before_append", "after_append", "after_sync", "before_commit"])
def test_a_crash_point_raises_in_this_process_and_the_book_goes_on_when_opened_anew(
    root: Path, point: str
) -> None:
    clock = FakeClock()
    with Book.open(root, clock=clock) as book:
        book.enqueue("a", 1)
        with faults(crash_at(point)) as plan, pytest.raises(Crashed):
            book.enqueue("a", 2)
    assert [fault.name for fault in plan.struck] == [point]
    with Book.open(root, clock=clock) as again:
        survives = {"before_append": 1}.get(point, 2)
        assert again.counts() == {"a": {"pending": survives}}
    assert audit(root) == []


def test_a_failed_write_is_one_error_and_the_next_change_works(root: Path) -> None:
    with Book.open(root) as book:
        book.enqueue("a", 1)
        with (
            faults(Fault("write", "segment", 2, "ENOSPC")) as plan,
            pytest.raises(TallybookError, match=os.strerror(errno.ENOSPC)),
        ):
            book.enqueue("a", 2)
            book.enqueue("a", 3)
        assert len(plan.struck) == 1
        book.enqueue("a", 4)
        assert [job.payload for job in book.jobs()] == [1, 2, 4]
    assert audit(root) == []


CHILD = """
import sys
from tallybook import Book
with Book.open(sys.argv[1]) as book:
    for number in range(10):
        print(book.enqueue("a", number).job_id, flush=True)
"""


def run_child(root: Path, *wanted: Fault, **more: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **environment(*wanted), **more}
    command = [sys.executable, "-c", CHILD, str(root)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)


def test_the_environment_kills_a_child_at_the_nth_passage_of_a_point(root: Path) -> None:
    for more in ({}, {"TALLYBOOK_CRASH_AT": "after_sync:3"}):
        done = run_child(root, *([] if more else [crash_at("after_sync", 3)]), **more)
        assert done.returncode == -9
        assert len(done.stdout.split()) == 2
    with Book.open(root) as book:
        assert book.counts() == {"a": {"pending": 6}}
    assert audit(root) == []


@pytest.mark.parametrize("name", ["segment", "log folder", "writer file", "state file"])
def test_a_sync_that_fails_ends_the_process_before_anything_is_acknowledged(
    root: Path, name: str
) -> None:
    done = run_child(root, Fault("sync", name, 1, "EIO"))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"tallybook: sync of {name} failed: ")
    assert done.stderr.count("\n") == 1
    assert run_child(root).returncode == 0
    assert audit(root) == []


def test_a_kill_in_the_middle_of_a_write_leaves_a_torn_tail_that_the_next_open_cuts(
    root: Path,
) -> None:
    done = run_child(root, Fault("write", "segment", 4, "kill"))
    assert done.returncode == -9
    (segment,) = Layout(root).segments()
    assert not segment.read_bytes().endswith(b"\n")
    with Book.open(root) as book:
        assert book.counts() == {"a": {"pending": 3}}
        book.enqueue("a", "after")
    assert [json.loads(line)["seq"] for line in segment.read_bytes().splitlines()][-1] == 6
    assert audit(root) == []


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("write:segment:1", "write kind:name:n:effect"),
        ("read:segment:1:EIO", "no kind 'read'"),
        ("point:nowhere:1:kill", "no crash point 'nowhere'"),
        ("write:segment:x:EIO", "'x' is no number"),
        ("write:segment:1:EWHAT", "use an errno name"),
        ("write:segment:1:skip", "only a sync"),
    ],
)
def test_a_fault_that_cannot_be_is_named(root: Path, told: str, words: str) -> None:
    env = {**os.environ, "TALLYBOOK_FAULTS": told}
    command = [sys.executable, "-m", "tallybook", "enqueue", "a", "1", "--book", str(root)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert words in done.stderr and done.stderr.count("\n") == 1
    with pytest.raises(BadInput):
        Fault("sync", "", 1, "EWHAT")


@pytest.mark.parametrize("seed", range(6))
def test_whatever_writes_fail_each_change_happened_or_raised(root: Path, seed: int) -> None:
    """F23: no service is down for ever after a full disk."""
    clock = FakeClock()
    kept = set()
    with Book.open(root, clock=clock) as book, faults(*dice_faults(seed, 60, 0.2)) as plan:
        for number in range(40):
            try:
                kept.add(book.enqueue("a", number).job_id)
                job = book.claim("w") if number % 3 == 0 else None
                if job:
                    book.settle(outcome(book, job))
            except TallybookError as error:
                assert "nothing was changed" in str(error)
            if number % 10 == 9:
                clock.reboot()
    assert len(plan.struck) > 3
    with Book.open(root, clock=clock) as again:
        assert {job.job_id for job in again.jobs(limit=1000)} == kept
    assert audit(root) == []


def test_audit_names_what_does_not_hold(root: Path) -> None:
    with Book.open(root) as book:
        book.enqueue("a", 1)
        with book._journal._store.transaction():
            book._journal._store.connection.execute("update jobs set priority = 7")
    assert ["state.db" in line for line in audit(root)] == [True]
    (segment,) = Layout(root).segments()
    segment.write_bytes(segment.read_bytes().replace(b'"priority":0', b'"priority":1'))
    assert any("hash" in line for line in audit(root))


def test_every_crash_point_is_passed_somewhere() -> None:
    sources = (Path(sys.modules["tallybook"].__file__ or "").parent).rglob("*.py")
    texts = [path.read_text("utf-8") for path in sources]
    passed = {point for point in POINTS if any(f'at("{point}")' in text for text in texts)}
    assert passed == set(POINTS)
