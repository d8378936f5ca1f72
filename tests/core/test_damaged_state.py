"""A state.db that is damaged, or does not fit the log, is folded anew; a longer lease is known."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from core_steps import claim

from tallybook import Book
from tallybook.book import Held
from tallybook.book.store import Store
from tallybook.cli.main import main
from tallybook.errors import BadInput, NotNow
from tallybook.job import Job
from tallybook.testing import FakeClock, audit
from tallybook.worker.context import Context
from tallybook.worker.handlers import registered
from tallybook.worker.metrics import Counters
from tallybook.worker.run import run
from tallybook.worker.running import Running


def spoil(root: Path) -> None:
    """Overwrite every page of state.db but the first, as a torn checkpoint could."""
    path = root / "state.db"
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with Book.open(tmp_path / "book") as book:
        for number in range(50):
            book.enqueue("a", number)
    return tmp_path / "book"


def test_a_damaged_state_db_is_folded_anew_at_open(root: Path) -> None:
    spoil(root)
    with Book.open(root) as book:
        assert book.counts() == {"a": {"pending": 50}}
        assert book.enqueue("a", 50).is_new
    assert audit(root) == []


def test_a_book_whose_wal_was_deleted_is_opened_beside_those_who_have_it_open(root: Path) -> None:
    with Book.open(root) as holder:
        holder.enqueue("a", 50)
        (root / "state.db-wal").unlink()
        with Book.open(root) as book:
            assert book.counts() == {"a": {"pending": 51}}
            holder.enqueue("a", 51)
            assert book.counts() == {"a": {"pending": 52}}
    assert audit(root) == []


def test_a_reader_of_a_damaged_state_db_says_what_to_do(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(root)
    assert main(["jobs", "list", "--book", str(root)]) in (0, 3)
    assert "unexpected" not in capsys.readouterr().err


def test_damage_that_a_change_meets_is_mended_and_the_change_is_made_once(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Book.open(root) as book:
        whole, met = Store.set_position, []

        def damaged(self: Store, position: object) -> None:
            if not met:
                met.append(1)
                error = sqlite3.DatabaseError("database disk image is malformed")
                error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
                raise error
            whole(self, position)  # type: ignore[arg-type] # handed through

        monkeypatch.setattr(Store, "set_position", damaged)
        assert book.enqueue("a", 50).is_new
        assert book.counts() == {"a": {"pending": 51}}
    assert met and audit(root) == []


def test_damage_that_a_question_meets_is_mended_before_the_next(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Book.open(root) as book:
        with pytest.raises(NotNow, match="folded anew"), book._reading():
            error = sqlite3.DatabaseError("database disk image is malformed")
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise error
        assert book.counts() == {"a": {"pending": 50}}


def test_a_lease_that_a_handler_extends_is_held_that_long(book: Book, clock: FakeClock) -> None:
    book.enqueue("a", 1)
    job = claim(book, lease_s=1)
    running = Running(1_000_000)

    running.start(Held(job.job_id, job.lease_token), book.moment().boot_us)
    seen: list[bool] = []

    def long(job: Job, ctx: Context) -> None:
        ctx.extend(60)
        clock.advance(5)
        seen.append(ctx.cancelled)
        with pytest.raises(BadInput, match="extend"):
            ctx.extend(float("nan"))
        clock.advance(60)
        seen.append(ctx.cancelled)

    run(
        registered(long),
        job,
        book,
        Counters(),
        lambda: running.holds(job.job_id, job.lease_token, book.moment().boot_us),
        lambda until_us: running.extended(job.job_id, until_us),
    )
    assert seen == [False, True]
    assert running.to_extend(book.moment().boot_us, 60_000_000) == []
