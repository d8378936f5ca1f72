"""A warehouse beside others: writers, readers, what takes its answers, the disk it spills to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ops_logs import Log

from tallybook import Book, ops
from tallybook.ops import memory


def test_an_open_warehouse_blocks_neither_a_writer_nor_another_reader(tmp_path: Path) -> None:
    """F39: what a notebook leaves open is a database of its own, over files."""
    with Book.open(tmp_path) as book:
        book.enqueue("a", 1)
        with ops.open(tmp_path) as left_open:
            book.enqueue("a", 2)
            with ops.open(tmp_path) as other:
                assert ops.overview(other)["jobs"].item() == 2
            book.enqueue("a", 3)
            assert ops.overview(left_open)["jobs"].item() == 1
    with Book.open(tmp_path) as book:
        assert len(book.jobs()) == 3


def test_what_a_question_gives_goes_to_polars_arrow_and_altair(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("007", 1)
    with ops.open(tmp_path) as warehouse:
        query = "select job_id, created_at from jobs where topic = $topic"
        asked = {"topic": "airports.sync"}
        frame = warehouse.sql(query, asked).pl()
        table = warehouse.sql(query, asked).arrow().read_all()
    assert frame["job_id"].to_list() == table["job_id"].to_pylist() == ["007"]
    import altair

    assert altair.Chart(frame).mark_point().encode(x="created_at:T").to_dict()["mark"]


def test_the_spilling_of_a_large_log_goes_into_out_and_leaves_with_the_warehouse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_LARGE_BYTES", 1)
    book, out = tmp_path / "book", tmp_path / "out"
    Log(book).put("a", "x", 1)
    (out / ".spill-999999999-x").mkdir(parents=True)
    with ops.open(book, out=out) as warehouse:
        (folder,) = out.iterdir()
        assert folder.name.startswith(f".spill-{os.getpid()}-")
        set_to = warehouse.sql("select current_setting('temp_directory')").fetchall()
        assert set_to == [(str(folder),)]
    assert not list(out.iterdir())
    out.rmdir()
    out.touch()
    with ops.open(book, out=out) as warehouse:
        assert warehouse.ledger.rows == 2
