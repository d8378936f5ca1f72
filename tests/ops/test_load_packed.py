"""Compressed segments and pruned logs: the same tables, the same places, no false hole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ops_histories import random_history
from ops_logs import Log
from test_load import BAD_LINES

from tallybook import ops, packed
from tallybook.layout import Layout

TABLES = ("events", "jobs", "leases", "cache_history", "segments", "topics")


def pack(path: Path) -> Path:
    """Make an archive of a segment, and take the plain one away."""
    archive = packed.packed(path)
    with path.open("rb") as source, archive.open("wb") as target:
        packed.pack(source, target)
    path.unlink()
    return archive


def tables(book: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of the models."""
    with ops.open(book) as warehouse:
        return {name: warehouse.sql(f"from {name} order by all").fetchall() for name in TABLES}


@pytest.mark.parametrize("seed", range(3))
def test_a_compressed_log_gives_the_same_tables(tmp_path: Path, seed: int) -> None:
    random_history(tmp_path, seed)
    before = tables(tmp_path)
    for path in Layout(tmp_path).segments():
        pack(path)
    assert tables(tmp_path) == before


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_in_an_archive_is_set_apart_with_its_place_in_the_text(
    tmp_path: Path, name: str
) -> None:
    log = Log(tmp_path)
    log.enqueued("before", 1)
    offset = log.path.stat().st_size
    log.raw(BAD_LINES[name] + b"\n")
    log.seq += 1
    log.enqueued("after", 2)
    pack(log.path)
    with ops.open(tmp_path) as warehouse:
        jobs = warehouse.sql("select job_id from jobs order by 1").fetchall()
        (bad,) = warehouse.quarantine.to_dicts()
    assert jobs == [("after",), ("before",)]
    assert (bad["file"], bad["line"], bad["byte_offset"]) == (log.path.name, 3, offset)


def test_a_cut_archive_gives_the_lines_before_the_cut_and_says_where_it_is(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for number in range(20_000):
        log.put(f"key-{number}", {"n": number * 7919 % 10007}, number)
    text = log.path.read_bytes()
    archive = pack(log.path)
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size * 2 // 3])
    with ops.open(tmp_path) as warehouse:
        (bad,) = warehouse.quarantine.to_dicts()
        rows = warehouse.ledger.rows
    assert 0 < rows < 20_001
    assert bad["reason"].startswith("damaged archive")
    assert text[: bad["byte_offset"]].count(b"\n") == rows == bad["line"] - 1


def test_a_plain_segment_counts_until_the_manifest_of_its_archive_is_there(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put("a", 1, 1)
    text = log.path.read_bytes()
    archive = pack(log.path)
    log.path.write_bytes(text)
    assert Layout(tmp_path).segments() == [log.path]
    Layout(tmp_path).manifest(log.path.name).write_text("{}")
    assert Layout(tmp_path).segments() == [archive]
    with ops.open(tmp_path) as warehouse:
        assert (warehouse.ledger.rows, warehouse.ledger.doubled) == (2, 0)


def prune(log: Log, seq: int, others: dict[str, int] | None = None) -> None:
    """Say that the lines of ``log`` up to ``seq`` were pruned, and all of ``others``."""
    ends = {writer: {"seq": last} for writer, last in ({log.writer: seq} | (others or {})).items()}
    (log.book / "log" / "anchor.json").write_text(json.dumps({"ends": ends}))


def test_what_was_pruned_is_no_hole_but_is_said(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put("a", 1, 1)
    log.open_segment(2)
    log.put("a", 2, 3, version=2)
    prune(log, 2)
    with ops.open(tmp_path) as warehouse:
        assert warehouse.gaps.rows() == []
        assert warehouse.notes == []
        assert "pruned: events 1 to 2 of writer" in warehouse.warnings[-1]
        assert warehouse.ledger.rows == 2


def test_a_hole_after_what_was_pruned_is_one(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put("a", 1, 1)
    log.open_segment(2)
    log.seq += 2
    log.put("a", 2, 3, version=2)
    prune(log, 2)
    with ops.open(tmp_path) as warehouse:
        assert warehouse.gaps.rows() == [(log.writer, 4, 5)]


def test_a_segment_that_is_missing_behind_the_anchor_is_a_hole(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put("a", 1, 1)
    log.open_segment(2)
    lost = log.path
    log.open_segment(3)
    lost.unlink()
    prune(log, 2)
    with ops.open(tmp_path) as warehouse:
        assert warehouse.gaps.rows() == [(log.writer, 3, 3)]


def test_a_writer_that_was_pruned_whole_lost_no_end(tmp_path: Path) -> None:
    first = Log(tmp_path)
    first.put("a", 1, 1)
    second = Log(
        tmp_path, "11111111" + "0" * 24, at=3, previous_writer=first.writer, previous_seq=2
    )
    prune(first, 2)
    with ops.open(tmp_path) as warehouse:
        assert warehouse.gaps.rows() == []
    prune(first, 2, {second.writer: 0})
    with ops.open(tmp_path) as warehouse:
        assert warehouse.gaps.rows() == []
