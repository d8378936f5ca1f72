"""An imported book: written whole or not at all, read like any other, refused where a queue is."""

from __future__ import annotations

import json
import shlex
import stat
from pathlib import Path

import pytest
from import_steps import CSV, HEAD, SAMPLES, imported, jobs

from tallybook import ops
from tallybook.book import Book
from tallybook.cli import main
from tallybook.errors import BadInput, IncompleteInput
from tallybook.ops import imports
from tallybook.ops.imports import writing
from tallybook.recover import rebuild


@pytest.fixture
def book(tmp_path: Path) -> Path:
    imports.import_jobs([SAMPLES / "slurm.txt"], "slurm", tmp_path / "book")
    return tmp_path / "book"


def test_every_command_of_a_queue_refuses_it_and_changes_nothing(
    book: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in book.rglob("*") if path.is_file()}
    commands = (
        "enqueue t 1", "status", "jobs list", "jobs requeue 101", "topic list", "checkpoint",
        "rebuild", "log verify", "log tail", "cache list", "topic pause t",
    )  # fmt: skip
    for command in commands:
        assert main.main([*command.split(), "--book", str(book)]) == 2, command
        assert "is the imported log of another system" in capsys.readouterr().err
    with pytest.raises(BadInput, match="imported log"):
        Book.open(book)
    with pytest.raises(BadInput, match="imported log"):
        rebuild(book)
    assert before == {path: path.read_bytes() for path in book.rglob("*") if path.is_file()}


def test_an_import_into_any_folder_that_is_not_its_own_is_refused(tmp_path: Path) -> None:
    with Book.open(tmp_path / "queue") as queue:
        queue.enqueue("t", 1)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/letter.txt").touch()
    (tmp_path / "file").touch()
    for name, message in (
        ("queue", "book of a queue"),
        ("full", "other files"),
        ("file", "is a file"),
    ):
        with pytest.raises(BadInput, match=message):
            imports.import_jobs([SAMPLES / "slurm.txt"], "slurm", tmp_path / name, replace=True)


def test_a_second_import_needs_replace_and_then_stands_alone(book: Path) -> None:
    with pytest.raises(BadInput, match="--replace"):
        imports.import_jobs([SAMPLES / "celery.ndjson"], "celery", book)
    imports.import_jobs([SAMPLES / "celery.ndjson"], "celery", book, replace=True)
    assert list(jobs(book)) == ["u1", "u2"]
    assert len(list((book / "log").glob("*.parquet"))) == 1


def test_an_import_that_fails_in_the_middle_leaves_the_earlier_one(
    book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str) -> None:
        if path.name == "imported.json":
            raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(writing, "_text", full)
    with pytest.raises(Exception, match="No space left"):
        imports.import_jobs([SAMPLES / "celery.ndjson"], "celery", book, replace=True)
    assert "101" in jobs(book)


def test_files_of_an_import_are_private(book: Path) -> None:
    modes = {stat.S_IMODE(path.stat().st_mode) for path in book.rglob("*") if path.is_file()}
    assert modes == {0o600}


def test_rows_that_could_not_be_read_make_every_answer_incomplete(tmp_path: Path) -> None:
    found = imported(tmp_path, HEAD + "a,q,2024-05-01T08:00:00Z,,,queued\nb,q,?,,,queued\n", CSV)
    assert not found.complete
    with ops.open(tmp_path / "book") as warehouse:
        assert "1 row could not be imported, the first is log.csv line 3" in warehouse.notes[0]
        assert warehouse.quarantine.select("line", "reason").rows() == [(3, "submit: no time")]
        ledger = warehouse.ledger
        assert (ledger.lines, ledger.rows, ledger.quarantined) == (2, 1, 1)


def test_an_imported_book_that_lost_its_events_or_is_newer_is_named(book: Path) -> None:
    (parquet,) = (book / "log").glob("*.parquet")
    parquet.rename(book / "elsewhere")
    with pytest.raises(IncompleteInput, match=parquet.name):
        ops.open(book)
    (book / "elsewhere").rename(parquet)
    record = json.loads((book / "log/imported.json").read_text())
    (book / "log/imported.json").write_text(json.dumps(record | {"v": 2}))
    with pytest.raises(BadInput, match="this version reads v 1"):
        ops.open(book)
    parquet.write_bytes(b"PAR1 torn")
    (book / "log/imported.json").write_text(json.dumps(record))
    with pytest.raises(IncompleteInput, match="cannot be read"):
        ops.open(book)


def test_the_models_have_the_columns_that_a_queue_has(book: Path, tmp_path: Path) -> None:
    with Book.open(tmp_path / "queue") as queue:
        queue.enqueue("t", 1)
    with ops.open(book) as one, ops.open(tmp_path / "queue") as other:
        for model in ("events", "jobs", "leases", "topics", "cache_history"):
            ours, theirs = one.sql(f"from {model}"), other.sql(f"from {model}")
            assert (ours.columns, ours.types) == (theirs.columns, theirs.types), model


def test_the_command_prints_what_it_read_and_counted_and_its_json_says_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["import", "jobs", str(SAMPLES / "slurm.txt"), "--profile", "slurm"]
    assert main.main([*given, "--book", str(tmp_path / "a")]) == 0
    text = capsys.readouterr().out
    assert "5  rows in the files" in text and "2  jobs never started" in text
    assert "an imported log says nothing of a cache" in text
    assert main.main([*given, "--book", str(tmp_path / "b"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["jobs"], told["never_started"], told["open"]) == (5, 5, 2, 2)
    assert (
        main.main([*given, "--set", "time.zone=Europe/Berlin", "--book", str(tmp_path / "c")]) == 0
    )
    assert jobs(tmp_path / "c")["101"][2] == "2024-05-01T06:00:00+00:00"
    assert "time.zone=Europe/Berlin" in (tmp_path / "c/profiles/slurm.toml").read_text()


def test_one_job_can_be_traced(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["trace", "101", "--book", str(book), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    found = [(one["event"], one["seq"]) for one in told["events"]]
    assert found == [("job.enqueued", 1), ("job.leased", 1), ("job.done", 1)]
    assert main.main(["trace", "101", "--book", str(book)]) == 0
    assert "2024-05-01T08:01:30+00:00" in capsys.readouterr().out
    assert main.main(["trace", "nobody", "--book", str(book)]) == 2


def test_analyze_answers_and_says_what_is_not_known(
    book: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for question in ("throughput", "latency", "leases", "backlog", "double-runs", "settings"):
        assert main.main(["analyze", question, "--book", str(book)]) in (0, 1), question
        told = capsys.readouterr().out
        assert "note: an imported log says nothing of a cache" in told
        if question in ("leases", "settings"):
            assert told.startswith("an imported log") or "104" in told


def test_what_a_foreign_log_cannot_say_is_said(book: Path, tmp_path: Path) -> None:
    with ops.open(book) as warehouse:
        told = {
            "leases": ops.findings.stuck_leases(warehouse),
            "cache": ops.findings.cache_rebuild(warehouse),
        }
        for kind, found in told.items():
            assert [one.title.lower() for one in found] == [warehouse.silent[kind]]
        for chart in (ops.charts.cache_history(warehouse), ops.charts.cache_compared(warehouse)):
            assert warehouse.silent["cache"] in json.dumps(chart.to_dict())
        assert ops.cache_parity(warehouse).row(0) == (None,) * 5
        notes = [one.title for one in ops.findings.incomplete(warehouse)]
        assert "An imported log says nothing of a cache" in notes
        with pytest.raises(BadInput, match="says nothing of a cache"):
            ops.reconcile(warehouse, SAMPLES / "slurm.txt", key="JobID")


def test_a_log_without_workers_says_so_where_workers_would_be_drawn(tmp_path: Path) -> None:
    imported(tmp_path, HEAD + "a,q,2024-05-01,2024-05-02,2024-05-03,ok\n", CSV)
    with ops.open(tmp_path / "book") as warehouse:
        drawn = json.dumps(ops.charts.lease_lanes(warehouse).to_dict())
    assert "an imported log that names no workers" in drawn


def test_commands_in_findings_are_those_that_an_imported_book_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported(tmp_path, HEAD + "a,q,2024-05-01,2024-05-02,2024-05-03,bad\n", CSV)
    with ops.open(tmp_path / "book") as warehouse:
        found = ops.findings.throughput_latency(warehouse)
    commands = [one.action for one in found if one.action]
    assert commands
    for command in commands:
        assert main.main(shlex.split(command)[1:]) == 0
