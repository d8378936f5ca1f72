"""F23, closer: a disk that takes the log and not state.db, and one that is full at opening."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from fault_steps import largest_file

from tallybook import Book
from tallybook.errors import TallybookError
from tallybook.testing import audit


def test_a_change_that_only_the_log_could_take_is_seen_as_soon_as_there_is_room(
    tmp_path: Path,
) -> None:
    root = tmp_path / "b"
    with Book.open(root) as book:
        book.enqueue("a", 1)
        with largest_file((root / "state.db-wal").stat().st_size):
            assert book.enqueue("a", 2).is_new
            with pytest.raises(TallybookError, match="make room on the disk"):
                book.counts()
        assert book.counts() == {"a": {"pending": 2}}
    assert audit(root) == []


def test_what_the_failed_commit_of_one_left_out_is_seen_by_readers_and_by_others(
    tmp_path: Path,
) -> None:
    root = tmp_path / "b"
    with Book.open(root) as idle, Book.open(root) as busy:
        busy.enqueue("a", 1)
        with largest_file((root / "state.db-wal").stat().st_size):
            assert busy.enqueue("a", 2).is_new
        with Book.read(root) as read:
            assert read.counts() == {"a": {"pending": 2}}
        assert idle.counts() == {"a": {"pending": 1}}
        idle.catch_up()  # a worker does so at each beat
        assert idle.counts() == {"a": {"pending": 2}}
    assert audit(root) == []


def test_a_payload_that_state_db_alone_was_to_have_is_not_acknowledged_where_that_fails(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "b"
    root.mkdir()
    (root / "book.toml").write_text('[log]\npayload = "digest"\n')
    logger = logging.getLogger("tallybook.book")
    logger.addHandler(caplog.handler)
    with Book.open(root) as book:
        book.enqueue("a", 1)
        with (
            largest_file((root / "state.db-wal").stat().st_size),
            pytest.raises(TallybookError, match=r"not keep the payload of job .*again"),
        ):
            book.enqueue("a", "new", idempotency_key="k")
        again = book.enqueue("a", "new", idempotency_key="k")
        assert again.is_new and [job.payload for job in book.jobs()] == [1, None, "new"]
        logger.removeHandler(caplog.handler)
        (line,) = {line for line in caplog.messages if "state.db lost it" in line}
        assert "dead letters with PayloadLost" in line


def test_a_disk_that_is_full_at_opening_is_no_reason_to_fold_anew(tmp_path: Path) -> None:
    root = tmp_path / "b"
    with Book.open(root) as book:
        book.enqueue("a", 1)
    inode = (root / "state.db").stat().st_ino
    with largest_file(16_384), pytest.raises(TallybookError, match=r"state\.db: .*nothing was"):
        Book.open(root)
    assert list(root.glob(".state.db.*")) == []  # nothing was begun beside it
    assert (root / "state.db").stat().st_ino == inode
    with Book.open(root) as book:
        assert book.counts() == {"a": {"pending": 1}}
