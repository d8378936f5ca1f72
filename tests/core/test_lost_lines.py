"""Lines that the log lost, and lines that state.db has not seen: questions say so or see them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from core_steps import claim, outcome, segments

from tallybook import Book
from tallybook.book import Held, Settled
from tallybook.cli.main import main
from tallybook.recover import rebuild


def filled(root: Path, jobs: int = 3) -> list[str]:
    """A book with jobs; returns their ids."""
    with Book.open(root) as book:
        return [book.enqueue("a", number).job_id for number in range(jobs)]


def check(root: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """``status --check``: its code and what it printed."""
    capsys.readouterr()
    code = main(["status", "--check", "--book", str(root)])
    return code, capsys.readouterr().out


@pytest.mark.parametrize("how", ["emptied", "one line left"])
def test_status_says_that_the_log_lost_its_end_also_where_nothing_of_a_writer_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    root = tmp_path / "book"
    filled(root)
    assert check(root, capsys)[0] == 0
    (segment,) = segments(root)
    if how == "emptied":
        shutil.rmtree(root / "log")
        (root / "log").mkdir()
    else:
        segment.write_bytes(segment.read_bytes().splitlines(keepends=True)[0])
    code, told = check(root, capsys)
    assert code == 1
    assert "the log lost its end: state.db saw seq 4" in told


def test_lines_that_are_lost_stay_an_alert_after_the_next_change_and_after_a_rebuild(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "book"
    filled(root)
    shutil.rmtree(root / "log")
    (root / "log").mkdir()
    filled(root, 1)
    code, told = check(root, capsys)
    assert code == 1
    assert "the log lost 4 lines (seq 1 to 4 of writer" in told
    rebuild(root)
    assert check(root, capsys)[0] == 1


def test_a_rebuild_of_a_damaged_log_leaves_an_alert(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "book"
    filled(root)
    _damage_line(root, 2)
    assert not rebuild(root).complete
    code, told = check(root, capsys)
    assert code == 1
    assert "the log lost 1 line (seq 3 of writer" in told


def _damage_line(root: Path, index: int) -> None:
    (segment,) = segments(root)
    lines = segment.read_bytes().splitlines(keepends=True)
    lines[index] = lines[index][:50] + b"\n"
    segment.write_bytes(b"".join(lines))


@pytest.mark.parametrize("rebuilt", [False, True])
def test_a_trace_of_a_damaged_log_shows_the_events_that_are_left_and_exits_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rebuilt: bool
) -> None:
    root = tmp_path / "book"
    ids = filled(root)
    _damage_line(root, 2)
    if rebuilt:
        rebuild(root)
    for job_id in (ids[0], ids[2]):
        assert main(["trace", job_id, "--book", str(root)]) == 4
        told = capsys.readouterr()
        assert "job.enqueued" in told.out
        assert "the log has 1 hole and 1 damaged line" in told.err
    assert main(["trace", ids[1], "--book", str(root)]) == 4
    assert "no event" in capsys.readouterr().err


def test_a_reader_sees_what_a_failed_commit_left_out_of_state_db(tmp_path: Path) -> None:
    root = tmp_path / "book"
    filled(root)
    shutil.copytree(root, tmp_path / "older")
    filled(root, 2)
    shutil.copy(tmp_path / "older" / "state.db", root / "state.db")
    before = (root / "state.db").read_bytes()
    with Book.read(root) as read:
        assert read.counts() == {"a": {"pending": 5}}
    assert (root / "state.db").read_bytes() == before


def test_two_settles_of_one_job_in_a_change_are_one_settle_and_one_refusal(book: Book) -> None:
    book.enqueue("a", 1)
    book.enqueue("a", 2)
    first, second = claim(book), claim(book)
    both = [Settled(outcome(book, job)) for job in (first, first, second)]
    turn = book.turn(both)
    assert [event.name for event in turn.events] == ["job.done", "job.settle_refused", "job.done"]
    assert "settled already" in turn.refused[first.job_id]
    assert book.counts() == {"a": {"done": 2}}
    book.enqueue("a", 3)
    third = claim(book)
    held = Held(third.job_id, third.lease_token)
    assert len(book.release([held, held], "twice")) == 1
