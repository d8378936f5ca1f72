"""Compaction: closed segments become Parquet once, and every answer stays the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import polars
import pytest
from ops_histories import random_history
from ops_logs import WRITER, Log, text

from tallybook import Book, ops
from tallybook.clock import to_text
from tallybook.errors import TallybookError
from tallybook.job import Job, Outcome
from tallybook.layout import Layout
from tallybook.log.compress import compress_closed
from tallybook.ops import compacting
from tallybook.ops.compacting import Compacted, compact
from tallybook.testing import FakeClock

MODELS = ("events", "jobs", "leases", "cache_history", "topics", "metrics")


def answers(warehouse: ops.Warehouse) -> dict[str, Any]:
    """Every row of each model, and what a reader is told."""
    told = {name: warehouse.sql(f"from {name} order by all").fetchall() for name in MODELS}
    frames = {
        "overview": ops.overview(warehouse),
        "throughput": ops.throughput(warehouse, ops.Span(every="1h")),
        "latency": ops.latency(warehouse, by="topic"),
        "compare": ops.compare(warehouse, *ops.halves(warehouse)),
        "outcomes": ops.outcomes(warehouse),
        "stuck": ops.stuck_leases(warehouse),
        "states": ops.lease_states(warehouse),
        "double runs": ops.double_runs(warehouse),
        "backlog": ops.backlog(warehouse).head(1),
        "settings": ops.settings_review(warehouse),
        "cache": ops.cache_as_of(warehouse),
        "gaps": warehouse.gaps,
        "quarantine": warehouse.quarantine,
    }
    told |= {name: frame.rows() for name, frame in frames.items()}
    return told | {"ledger": warehouse.ledger, "notes": warehouse.notes}


def asked(book: Path, out: Path) -> dict[str, Any]:
    """The events of a book with the archive in ``out``, and what a reader is told of them."""
    with ops.open(book, out=out) as warehouse:
        events = warehouse.sql("from events order by position").fetchall()
        told = {"quarantine": warehouse.quarantine.rows(), "gaps": warehouse.gaps.rows()}
        return told | {"events": events, "ledger": warehouse.ledger, "notes": warehouse.notes}


def test_the_archive_and_the_open_tail_answer_like_the_raw_log(tmp_path: Path) -> None:
    book, out = tmp_path / "book", tmp_path / "out"
    random_history(book, seed=1, steps=300)
    with ops.open(book, out=tmp_path / "none") as warehouse:
        raw = answers(warehouse)
    done = compact(book, out)
    assert len(done.made) == len(list((book / "log").glob("*.ndjson"))) - 1 and not done.left
    with ops.open(book, out=out) as warehouse:
        assert answers(warehouse) == raw
        from_log = warehouse.sql("select count(*) from lines").fetchall()[0][0]
        assert from_log == raw["ledger"].rows - sum(entry.rows for entry in done.made)
        with warehouse.as_of(text(900)) as past, ops.open(book, as_of=text(900)) as raw_past:
            assert past.sql("from jobs order by all").fetchall() == (
                raw_past.sql("from jobs order by all").fetchall()
            )


def done(book: Book, job: Job) -> Outcome:
    """What a worker would report of ``job`` now."""
    now = to_text(book.moment().now)
    return Outcome(job.job_id, job.topic, "w", job.lease_token, "done", now, 1.5)


def worked(root: Path, jobs: int = 16) -> Layout:
    """A closed book of the runtime, in small segments, compressed but for one."""
    root.mkdir()
    (root / "book.toml").write_text("[log]\nsegment_bytes = 3000\n")
    clock = FakeClock()
    with Book.open(root, clock=clock) as book:
        for number in range(jobs):
            clock.advance(1)
            book.enqueue("a", {"n": number})
            job = book.claim("w")
            assert job
            book.settle(done(book, job))
    compress_closed(Layout(root), limit=len(Layout(root).segments()) - 2)
    return Layout(root)


def test_what_a_compaction_made_is_proven_by_manifest_or_by_chain_and_made_once(
    tmp_path: Path,
) -> None:
    place, out = worked(tmp_path / "book"), tmp_path / "out"
    done = compact(place.root, out)
    segments = [path.name for path in place.segments()]
    assert len(done.made) == len(segments) - 1 > 3
    assert segments[-2].endswith(".ndjson") and segments[0].endswith(".zst")
    assert all(entry.hash and entry.numbers == entry.rows == entry.lines for entry in done.made)
    before = {path: path.stat().st_mtime_ns for path in done.folder.iterdir()}
    again = compact(place.root, out)
    assert (again.made, len(again.kept)) == ([], len(done.made))
    assert {path: path.stat().st_mtime_ns for path in done.folder.iterdir()} == before
    compress_closed(place)
    assert compact(place.root, out).made == []
    assert {path.stat().st_mode & 0o777 for path in done.folder.iterdir()} == {0o600}


def test_rows_in_the_archive_are_sorted_by_event_and_then_by_time(tmp_path: Path) -> None:
    place = worked(tmp_path / "book")
    done = compact(place.root, tmp_path / "out")
    for path in done.folder.glob("*.parquet"):
        rows = polars.read_parquet(path, columns=["event", "seq"]).rows()
        assert rows == sorted(rows)


def test_quarantined_and_blank_lines_of_a_compacted_segment_stay_known(tmp_path: Path) -> None:
    book, out = tmp_path / "book", tmp_path / "out"
    log = Log(book)
    log.put("a", 1, 1)
    log.raw(b"not an event\n\n")
    log.raw(b'{"v":1,"seq":3,"torn')
    log.seq = 3
    log.open_segment(2)
    log.put("a", 2, 3, version=2)
    raw = asked(book, tmp_path / "none")
    done = compact(book, out)
    assert asked(book, out) == raw and raw["ledger"].quarantined == 2
    assert done.made[0].hash is None and done.made[0].blank == 1
    log.path.with_name(f"{WRITER[:8]}-000000000001.ndjson").write_bytes(b"")
    with ops.open(book, out=out) as warehouse:
        assert warehouse.ledger.rows == 2


def test_a_segment_that_was_changed_since_is_read_from_the_log_and_compacted_again(
    tmp_path: Path,
) -> None:
    book, out = tmp_path / "book", tmp_path / "out"
    log = Log(book)
    log.put("a", "first", 1)
    first = log.path
    log.open_segment(2)
    compact(book, out)
    first.write_bytes(first.read_bytes().replace(b'"first"', b'"other"'))
    with ops.open(book, out=out) as warehouse:
        assert ops.cache_as_of(warehouse)["value"].to_list() == ['"other"']
    assert len(compact(book, out).made) == 1
    with ops.open(book, out=out) as warehouse:
        assert warehouse.sql("select count(*) from lines").fetchall() == [(1,)]
        assert ops.cache_as_of(warehouse)["value"].to_list() == ['"other"']


def test_the_archive_of_another_book_of_the_same_node_is_not_mixed_in(tmp_path: Path) -> None:
    other, book, out = tmp_path / "other", tmp_path / "book", tmp_path / "out"
    log = Log(other, "11111111" + "0" * 24)
    log.put("theirs", 1, 1)
    log.open_segment(2)
    compact(other, out)
    Log(book).put("ours", 1, 1)
    with ops.open(book, out=out) as warehouse:
        assert ops.cache_as_of(warehouse)["key"].to_list() == ["ours"]


def test_a_writer_that_turns_up_before_the_archived_ones_moves_their_positions(
    tmp_path: Path,
) -> None:
    book, out = tmp_path / "book", tmp_path / "out"
    log = Log(book, at=100)
    log.put("k", "new", 101)
    log.open_segment(102)
    compact(book, out)
    old = Log(book, "11111111" + "0" * 24, at=0)
    old.put("k", "old", 1)
    with ops.open(book, out=out) as warehouse:
        values = warehouse.sql("select value from cache_history order by position").fetchall()
        assert values == [('"old"',), ('"new"',)]
        assert warehouse.sql("select count(distinct position) from events").fetchall() == [(5,)]


def killed_at(step: int) -> Iterator[None]:
    """Counts steps; the one of that number fails."""
    for _ in range(step):
        yield
    raise KeyboardInterrupt


@pytest.mark.parametrize("step", [0, 1, 2, 3, 5])
def test_a_compaction_that_was_interrupted_leaves_nothing_half_and_is_finished_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    book, out = tmp_path / "book", tmp_path / "out"
    log = Log(book)
    for number in range(3):
        log.put("k", number, number, version=number + 1)
        log.open_segment(number)
    raw = asked(book, tmp_path / "none")
    steps, sync = killed_at(step), compacting._sync

    def dying(path: Path, flags: int) -> None:
        next(steps)
        sync(path, flags)

    monkeypatch.setattr(compacting, "_WORKERS", 1)
    monkeypatch.setattr(compacting, "_sync", dying)
    with pytest.raises(KeyboardInterrupt):
        compact(book, out)
    assert asked(book, out) == raw
    monkeypatch.undo()
    compact(book, out)
    assert asked(book, out) == raw
    assert not [path for path in out.rglob("*") if path.name.startswith(".")]
    assert len(list((out / "archive").iterdir())) == 6


def test_two_compactions_at_once_make_each_segment_once(tmp_path: Path) -> None:
    place, out = worked(tmp_path / "book", jobs=6), tmp_path / "out"
    told: list[Compacted] = []
    threads = [Thread(target=lambda: told.append(compact(place.root, out))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = [entry.segment for one in told for entry in one.made]
    assert len(made) == len(set(made)) == len(place.segments()) - 1


def test_an_archive_that_does_not_read_back_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = worked(tmp_path / "book", jobs=6)
    query = compacting.statements.query
    broken = "select 0 as rows_read, 0 as digest from read_parquet($file)"
    monkeypatch.setattr(
        compacting.statements,
        "query",
        lambda name: broken if name == "digest_of_file" else query(name),
    )
    with pytest.raises(TallybookError, match="does not read back as it was written"):
        compact(place.root, tmp_path / "out")
    assert not list((tmp_path / "out" / "archive").glob("*.json"))
