"""The load: every line accounted for, and a bad one takes nothing with it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from ops_histories import random_history
from ops_logs import Log, text

from tallybook import ops
from tallybook.errors import BadInput
from tallybook.ops.judge import Verdict

GOOD = b'{"v":1,"seq":%d,"event":"job.x","occurred_at":"2026-11-29T10:00:00.000000Z","boot_us":1'
BAD_LINES = {
    "torn": GOOD % 3,
    "fused": GOOD % 3 + b"}" + GOOD % 4 + b"}",
    "a number": b"123",
    "a list": b"[1]",
    "null": b"null",
    "text": b'"abc"',
    "NUL bytes": b"\x00\x00\x00\x00",
    "NUL inside": GOOD % 3 + b',"topic":"a\x00b"}',
    "lone surrogate": GOOD % 3 + b',"topic":"a\\ud800b"}',
    "not UTF-8": GOOD % 3 + b',"topic":"\xff"}',
    "seq as text": GOOD.replace(b"%d", b'"3"') + b"}",
    "seq as a fraction": GOOD.replace(b"%d", b"3.5") + b"}",
    "text where a number must be": GOOD % 3 + b',"lease_token":"x"}',
    "a flag that is none": GOOD % 3 + b',"replayed":1}',
    "a time that is none": GOOD % 3 + b',"locked_until":"yesterday"}',
    "no event": b'{"v":1,"seq":3,"occurred_at":"2026-11-29T10:00:00.000000Z","boot_us":1}',
    "another version": (GOOD % 3).replace(b'"v":1', b'"v":2') + b"}",
    "a field twice": GOOD % 3 + b',"seq":9}',
    "NaN": GOOD % 3 + b',"duration_ms":NaN}',
    "half a segment of another program": b"Nov 29 10:00:00 host program: started",
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_is_set_apart_with_its_place_and_takes_nothing_with_it(
    tmp_path: Path, name: str
) -> None:
    log = Log(tmp_path)
    log.enqueued("before", 1)
    offset = log.path.stat().st_size
    log.raw(BAD_LINES[name] + b"\n")
    log.seq += 1
    log.enqueued("after", 2)
    with ops.open(tmp_path) as warehouse:
        jobs = warehouse.sql("select job_id from jobs order by 1").fetchall()
        (bad,) = warehouse.quarantine.to_dicts()
        ledger, notes, gaps = warehouse.ledger, warehouse.notes, warehouse.gaps.rows()
    assert jobs == [("after",), ("before",)]
    assert (bad["file"], bad["line"], bad["byte_offset"]) == (log.path.name, 3, offset)
    assert bad["reason"] and log.path.name in notes[0]
    assert ledger.lines == ledger.rows + ledger.quarantined == 4
    assert [(first, last) for _, first, last in gaps] == [(3, 3)]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_spoiled_lines_are_rows_or_quarantined_or_blank(
    tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)  # noqa: S311 - a spoiler, by a seed
    random_history(tmp_path, seed, steps=200)
    good = bad = blank = 0
    for path in (tmp_path / "log").glob("*.ndjson"):
        lines = path.read_bytes().splitlines()
        good += len(lines)
        for _ in range(dice.randrange(4)):
            spoiled = dice.choice([*BAD_LINES.values(), b"", b"  "])
            blank, bad = blank + (not spoiled.strip()), bad + bool(spoiled.strip())
            lines.insert(dice.randrange(len(lines) + 1), spoiled)
        path.write_bytes(b"".join(line + b"\n" for line in lines))
    with ops.open(tmp_path) as warehouse:
        ledger = warehouse.ledger
        assert (ledger.rows, ledger.quarantined, ledger.blank) == (good, bad, blank)
        assert warehouse.quarantine.height == bad and len(warehouse.notes) >= bad
        assert warehouse.gaps.is_empty()


def test_a_fused_line_and_a_blank_one_do_not_cancel_out(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.raw(GOOD % 2 + b"}" + GOOD % 3 + b"}\n\n")
    with ops.open(tmp_path) as warehouse:
        assert (warehouse.ledger.rows, warehouse.ledger.quarantined, warehouse.ledger.blank) == (
            1,
            1,
            1,
        )


@pytest.mark.parametrize("tail", [b'{"v":1,"seq":3,"ev', GOOD % 3 + b"}", b"\x00\x00\x00"])
def test_a_torn_tail_of_the_open_segment_is_a_warning_and_no_event(
    tmp_path: Path, tail: bytes
) -> None:
    log = Log(tmp_path)
    log.enqueued("whole", 1)
    log.raw(tail)
    with ops.open(tmp_path) as warehouse:
        assert warehouse.notes == [] and warehouse.quarantine.is_empty()
        assert "torn line" in warehouse.warnings[0]
        assert warehouse.sql("select count(*) from events").fetchall() == [(2,)]


def test_a_segment_that_was_being_opened_at_the_crash_is_a_warning(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("whole", 1)
    (log.path.parent / f"{log.writer[:8]}-000000000003.ndjson").write_bytes(b'{"v":1,"seq":3,"ev')
    with ops.open(tmp_path) as warehouse:
        assert warehouse.notes == [] and len(warehouse.warnings) == 1


def test_a_torn_end_of_a_closed_segment_makes_the_input_incomplete(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.raw(b'{"v":1,"seq":2,"ev')
    log.seq = 2
    log.open_segment(5)
    with ops.open(tmp_path) as warehouse:
        assert warehouse.quarantine["reason"].to_list() == ["torn tail: no end of line"]
        assert warehouse.notes and [row[1:] for row in warehouse.gaps.rows()] == [(2, 2)]


def test_holes_are_named_by_writer_with_a_lost_end_included(tmp_path: Path) -> None:
    first = Log(tmp_path, at=0)
    first.put("a", 1, 1)
    first.seq = 5
    first.put("b", 1, 2)
    Log(tmp_path, "11111111" + "0" * 24, at=3, previous_writer=first.writer, previous_seq=9)
    with ops.open(tmp_path) as warehouse:
        assert warehouse.gaps.rows() == [(first.writer, 3, 5), (first.writer, 7, 9)]
        assert len(warehouse.notes) == 2


def test_a_first_segment_that_is_missing_is_a_hole(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put("a", 1, 1)
    first = log.path
    log.open_segment(2)
    first.unlink()
    with ops.open(tmp_path) as warehouse:
        assert [row[1:] for row in warehouse.gaps.rows()] == [(1, 2)]


def test_a_copied_segment_is_counted_once_and_said(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 1)
    (log.path.parent / f"copy-{log.path.name}").write_bytes(log.path.read_bytes())
    with ops.open(tmp_path) as warehouse:
        assert warehouse.sql("select count(*) from events").fetchall() == [(2,)]
        assert warehouse.ledger.doubled == 2 and "2 doubled lines" in warehouse.warnings[-1]


def test_a_line_longer_than_the_limit_of_the_fast_reader_is_read(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put("long", "x" * (20 * 1024 * 1024), 1)
    log.put("short", "y", 2)
    with ops.open(tmp_path) as warehouse:
        assert warehouse.sql("select max(length(value)) from cache_history").fetchall()[0][0] > 2e7
        assert warehouse.ledger.rows == 3 and not warehouse.notes


def test_a_segment_whose_first_line_is_lost_keeps_its_writer(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put("a", 1, 1)
    log.open_segment(2)
    log.put("a", 2, 3)
    log.path.write_bytes(log.path.read_bytes().replace(b'{"v":1,"seq":3', b'{"v":1,"seq":x', 1))
    with ops.open(tmp_path) as warehouse:
        writers = warehouse.sql("select distinct writer from events").fetchall()
        assert writers == [(log.writer,)] and ops.cache_as_of(warehouse)["value"].to_list() == ["2"]


def test_reading_changes_no_byte_of_the_book_and_makes_no_file(tmp_path: Path) -> None:
    random_history(tmp_path, 1)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with ops.open(tmp_path) as warehouse:
        ops.overview(warehouse)
        ops.compare_cache(warehouse)
        ops.findings.incomplete(warehouse)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_folder_that_is_no_book_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no book at"):
        ops.open(tmp_path / "nowhere")
    with pytest.raises(BadInput, match="no log/"):
        ops.open(tmp_path)


def test_metrics_are_read_cell_by_cell_and_bad_rows_set_apart(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 1)
    log.leased("j", 1)
    log.ended("job.done", "j", 1, 2)
    (tmp_path / "metrics").mkdir()
    rows = ["interval_started_at,interval_ended_at,node_id,worker,pending,done_count",
            f"{text(0)},{text(10)},node-1,w1,3,7", f"{text(10)},{text(20)},node"]  # fmt: skip
    (tmp_path / "metrics" / "2026-11-29.csv").write_text("\n".join(rows))
    with ops.open(tmp_path) as warehouse:
        found = warehouse.sql("select worker, pending, done_count, dead from metrics").fetchall()
        assert found == [("w1", 3, 7, None)]
        assert warehouse.metrics_gap().rows() == [("w1", "done", 1, 7)]
        assert warehouse.quarantine["line"].to_list() == [3] and warehouse.notes == []


def test_a_log_that_grows_while_it_is_read_is_read_as_a_whole_number_of_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tallybook.ops import loading

    log = Log(tmp_path)
    judge = loading.judge

    def judge_then_grow(path: Path, *asked: Any, **more: Any) -> Verdict:
        verdict = judge(path, *asked, **more)
        log.enqueued(f"j{log.seq}", 1)
        return verdict

    monkeypatch.setattr(loading, "judge", judge_then_grow)
    with ops.open(tmp_path) as warehouse:
        assert warehouse.ledger.rows == 2 and not warehouse.notes


def test_a_refused_extension_counts_as_refused_in_log_and_metrics_alike(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 1)
    log.leased("j", 1)
    log.expired("j", 62)
    log.refused("j", 1, 70, settle="extend")
    log.refused("j", 1, 71)
    (tmp_path / "metrics").mkdir()
    rows = ["interval_started_at,worker,refused_count", f"{text(0)},w1,2"]
    (tmp_path / "metrics" / "2026-11-29.csv").write_text("\n".join(rows) + "\n")
    with ops.open(tmp_path) as warehouse:
        assert warehouse.metrics_gap().is_empty()


def test_a_log_that_was_copied_and_truncated_is_counted_once_and_what_fell_between_is_a_hole(
    tmp_path: Path,
) -> None:
    """F26, F27: a rotator copies the file, loses a line, and the writer goes on from the start."""
    log = Log(tmp_path)
    log.put("a", 1, 1)
    log.put("b", 1, 2)
    copied = log.path.with_name(log.path.name.replace(".ndjson", ".1.ndjson"))
    copied.write_bytes(log.path.read_bytes())
    again = log.path.read_bytes().splitlines(keepends=True)[-1]
    log.seq += 1
    log.path.write_bytes(again)
    log.put("c", 1, 3)
    with ops.open(tmp_path) as warehouse:
        assert warehouse.sql("select seq from events order by position").fetchall() == [
            (1,), (2,), (3,), (5,),
        ]  # fmt: skip
        assert warehouse.ledger.doubled == 1
        assert [row[1:] for row in warehouse.gaps.rows()] == [(4, 4)]
