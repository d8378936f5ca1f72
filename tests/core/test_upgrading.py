"""State files that version 5 made are read into the tables of this version."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from core_steps import job_of
from test_checkpoints import is_whole, lose_state, pruned, state, timeless

from tallybook import Book
from tallybook.book import checkpoints, older
from tallybook.book import store as stores
from tallybook.layout import Layout
from tallybook.recover import rebuild
from tallybook.recover.rebuild import look

TABLES = Path(__file__).parent / "state_of_version_5.sql"


@pytest.fixture(autouse=True)
def newer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The version of this program is newer than 5."""
    monkeypatch.setattr(stores, "SCHEMA_VERSION", max(6, stores.SCHEMA_VERSION))


def make_older(path: Path) -> None:
    """Put the rows of a state file into one as version 5 made it."""
    old = path.with_name("old.db")
    with closing(sqlite3.connect(old)) as made:
        made.executescript(TABLES.read_text())
        made.execute("attach ? as new", (str(path),))
        for (table,) in made.execute("select name from main.sqlite_schema").fetchall():
            if not table.startswith("sqlite_"):
                there = [row[1] for row in made.execute(f"pragma main.table_info({table})")]
                names = ", ".join(there)
                made.execute(f"insert into main.{table} ({names}) select {names} from new.{table}")  # noqa: S608 - ours
        made.commit()
    path.unlink()
    old.rename(path)


def make_checkpoint_older(layout: Layout) -> None:
    """The same with the newest checkpoint and its mark."""
    kept = checkpoints.kept(layout)[0]
    make_older(kept.path)
    mark = kept.path.with_suffix(".json")
    mark.write_text(mark.read_text().replace(kept.digest, checkpoints.digest(kept.path)))
    assert older.position(kept.path) == kept.position


def test_a_pruned_log_folds_from_a_checkpoint_of_an_older_version(tmp_path: Path) -> None:
    layout, before = pruned(tmp_path)
    make_checkpoint_older(layout)
    lose_state(layout)
    assert state(layout.root) == before
    Book.open(layout.root).close()
    assert timeless(layout.root)[0].keys() == before[0].keys()
    assert is_whole(layout)
    assert rebuild(layout.root).parity


def test_payloads_that_state_db_alone_has_outlive_an_upgrade(tmp_path: Path) -> None:
    root = tmp_path / "b"
    root.mkdir()
    (root / "book.toml").write_text('[log]\npayload = "digest"\n')
    with Book.open(root) as book:
        job_id = book.enqueue("a", {"id": 7}).job_id
        book.pause("a", "for the upgrade")
    make_older(root / "state.db")
    with Book.open(root) as book:
        assert job_of(book, job_id).payload == {"id": 7}
        assert book.topics() == {"a": "paused"}


@pytest.mark.parametrize("version", [4, 99])
def test_a_state_too_old_or_of_a_newer_version_is_passed_over(tmp_path: Path, version: int) -> None:
    with Book.open(tmp_path / "b") as book:
        book.enqueue("a", 1)
    path = tmp_path / "b" / "state.db"
    with closing(sqlite3.connect(path)) as made:
        made.execute(f"pragma user_version = {version}")
    assert older.position(path) is None
    with Book.open(tmp_path / "b") as book:
        assert book.counts() == {"a": {"pending": 1}}


def test_a_surviving_state_of_an_older_version_is_compared_with_the_log(tmp_path: Path) -> None:
    with Book.open(tmp_path / "b") as book:
        book.put_entry("a", {"x": 1})
        book.put_entry("b", {"x": 2})
    make_older(tmp_path / "b" / "state.db")
    with closing(sqlite3.connect(tmp_path / "b" / "state.db")) as state_db:
        state_db.execute("""update cache set value = '{"x":3}' where key = 'b'""")
        state_db.commit()
    there = set((tmp_path / "b").iterdir())
    (found,) = look(tmp_path / "b")[0].surviving
    assert set((tmp_path / "b").iterdir()) == there, "looking leaves nothing"
    assert (found.error, found.same, found.differs) == (None, 1, ("b",))
