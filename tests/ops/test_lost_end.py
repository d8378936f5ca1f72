"""A log that has lost its end, or all of it, is incomplete and never clean."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from ops_logs import WRITER, Log

from tallybook import ops
from tallybook.errors import TallybookError


def latest(book: Path, seq: int) -> str:
    (book / "metrics").mkdir()
    told = {"writer": WRITER, "seq": seq, "hash": "00"}
    (book / "metrics" / "latest.json").write_text(json.dumps(told))
    return "metrics/latest.json"


def state(book: Path, seq: int) -> str:
    with closing(sqlite3.connect(book / "state.db")) as made:
        made.execute("create table position (one, writer, seq)")
        made.execute("insert into position values (1, ?, ?)", [WRITER, seq])
        made.commit()
    return "state.db"


def checkpoint(book: Path, seq: int) -> str:
    (book / "checkpoints").mkdir()
    path = book / "checkpoints" / "0190aaaa-000000000009.json"
    path.write_text(json.dumps({"writer": WRITER, "seq": seq}))
    return f"checkpoints/{path.name}"


def manifest(book: Path, seq: int) -> str:
    path = book / "log" / "0190aaaa-000000000001.manifest.json"
    path.write_text(json.dumps({"writer": WRITER, "last_seq": seq}))
    return f"log/{path.name}"


MARKS = pytest.mark.parametrize("mark", [latest, state, checkpoint, manifest])


@MARKS
def test_lines_that_something_saw_and_the_log_has_lost_are_a_hole_in_its_name(
    tmp_path: Path, mark: Callable[[Path, int], str]
) -> None:
    Log(tmp_path).enqueued("j", 1)
    source = mark(tmp_path, 4)
    with ops.open(tmp_path) as warehouse:
        assert warehouse.gaps.rows() == [(WRITER, 3, 4)]
        (note,) = warehouse.notes
        (found,) = ops.findings.incomplete(warehouse)
    assert note == f"writer 0190aaaa has no events 3 to 4 any more; {source} saw them"
    assert (found.kind, found.severity, found.ids) == ("gap", "problem", ("0190aaaa:3-4",))


@MARKS
def test_an_emptied_log_is_one_hole_from_the_first_event_on(
    tmp_path: Path, mark: Callable[[Path, int], str]
) -> None:
    (tmp_path / "log").mkdir()
    mark(tmp_path, 4)
    with ops.open(tmp_path) as warehouse:
        assert warehouse.gaps.rows() == [(WRITER, 1, 4)]
        for findings in (ops.findings.throughput_latency, ops.findings.stuck_leases):
            assert [finding.severity for finding in findings(warehouse)] == ["info"]
        assert ops.findings.incomplete(warehouse)[0].kind == "gap"


def test_a_log_that_goes_on_after_what_was_seen_is_whole(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 1)
    for mark in (latest, state, checkpoint, manifest):
        mark(tmp_path, log.seq)
    log.leased("j", 2)
    with ops.open(tmp_path) as warehouse:
        assert warehouse.notes == [] and warehouse.warnings == []


def test_lines_that_were_pruned_on_purpose_are_not_lost(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.enqueued("j", 1)
    log.path.unlink()
    log.open_segment(2)
    manifest(tmp_path, 2)
    (tmp_path / "log" / "anchor.json").write_text(json.dumps({"ends": {WRITER: {"seq": 2}}}))
    with ops.open(tmp_path) as warehouse:
        assert warehouse.notes == []


def test_a_segment_that_cannot_be_read_is_an_error_with_its_path(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.path.unlink()
    log.path.mkdir()
    (log.path / "x").touch()
    with pytest.raises(TallybookError, match=f"cannot read {log.path}: "):
        ops.open(tmp_path)


def test_a_log_folder_that_cannot_be_read_is_an_error_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Log(tmp_path)
    list_folder = Path.iterdir

    def refused(path: Path) -> object:
        if path.name == "log":
            raise PermissionError(13, "Permission denied", str(path))
        return list_folder(path)

    monkeypatch.setattr(Path, "iterdir", refused)
    with pytest.raises(TallybookError, match=r"cannot read .*/log: Permission denied"):
        ops.open(tmp_path)
    shutil.rmtree(tmp_path / "log")
