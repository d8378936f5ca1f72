"""``tallybook rebuild``: what comes back, what is set aside, and what the certificate says."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recover_logs import HandLog, lines, write

from tallybook import Book
from tallybook.book import checkpoints
from tallybook.cli.main import main
from tallybook.errors import BadInput, LogDamaged
from tallybook.layout import Layout
from tallybook.log.verify import verify
from tallybook.recover import look, rebuild
from tallybook.testing import FakeClock
from tallybook.worker.sign import Sign


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "b"


@pytest.fixture
def book(root: Path, clock: FakeClock) -> Iterator[Book]:
    with Book.open(root, clock=clock) as opened:
        yield opened


def certificate(told: str | None) -> dict[str, Any]:
    """The certificate at that path."""
    assert told is not None
    shown: dict[str, Any] = json.loads(Path(told).read_text())
    return shown


def segments(root: Path) -> list[Path]:
    """The plain segments, by name."""
    return sorted((root / "log").glob("*.ndjson"))


def lose_line(root: Path, seq: int) -> None:
    """Take a line out of the first segment."""
    path = segments(root)[0]
    write(path, [line for line in lines(path) if json.loads(line)["seq"] != seq])


def jobs_of(root: Path) -> dict[str, Any]:
    with Book.read(root) as read:
        return {job.job_id: job for job in read.jobs(limit=10**6)}


def test_the_queue_comes_back_with_keys_payloads_counters_due_times_and_dead_letters(
    root: Path, clock: FakeClock
) -> None:
    with Book.open(root, clock=clock) as book:
        book.enqueue("a", {"n": 1}, idempotency_key="k1", priority=5)
        book.enqueue("a", {"n": 2}, delay_s=60)
        book.enqueue("a", {"n": 3}, expires_after_s=1)
        clock.advance(2)
        book.expire()
        before = {job.job_id: job for job in book.jobs()}
    for path in root.glob("state.db*"):
        path.unlink()
    rebuilt = rebuild(root, clock=clock)
    assert rebuilt.complete
    assert (rebuilt.jobs, rebuilt.rescued) == (3, 0)
    assert jobs_of(root) == before
    with Book.open(root, clock=clock) as again:
        assert again.enqueue("a", {"n": 1}, idempotency_key="k1").is_new is False


def test_a_leased_job_comes_back_as_rescued_unless_its_worker_lives(
    book: Book, root: Path, clock: FakeClock
) -> None:
    gone = book.enqueue("a", 1).job_id
    assert book.claim("gone")
    held = book.enqueue("a", 2).job_id
    assert book.claim("alive")
    told = {"pid": 1, "host": book.node.host, "boot_id": book.moment().boot_id}
    alive = Sign(book, "alive", told)
    rebuilt = rebuild(root, clock=clock)
    jobs = jobs_of(root)
    assert rebuilt.rescued == 1
    assert (jobs[gone].status, jobs[gone].rescue_count) == ("pending", 1)
    assert (jobs[held].status, jobs[held].locked_by) == ("leased", "alive")
    alive.remove()
    assert rebuild(root, clock=clock).rescued == 1
    assert rebuild(root, clock=clock).rescued == 0


def test_the_same_log_gives_the_same_state_each_time_also_doubled_and_under_other_names(
    tmp_path: Path,
) -> None:
    log = HandLog(tmp_path / "one")
    log.live([("put", "a", 1), ("enqueue", "j", 0), ("roll", "", 0), ("put", "b", 2)])
    log.live([("drop", "a", 0), ("writer", "", 0), ("put", "c", 3)])
    other = tmp_path / "two"
    shutil.copytree(log.root, other)
    for number, path in enumerate(segments(other)):
        write(path, [line for line in lines(path) for _ in range(2)])
        shutil.copy(path, path.with_name(f"z{number}-again.ndjson"))
        path.rename(path.with_name(f"{9 - number}.ndjson"))
    one, two, again = look(log.root), look(other), look(log.root)
    assert one[0].parity == two[0].parity == again[0].parity
    assert one[1].tables.entries == two[1].tables.entries
    assert one[1].tables.jobs == two[1].tables.jobs
    assert two[0].complete and two[0].doubled == 3 * one[0].events_read
    assert replace(one[0], made_at="") == replace(again[0], made_at="")


def test_the_old_state_even_corrupt_is_set_aside_and_the_newest_three_are_kept(
    book: Book, root: Path, clock: FakeClock
) -> None:
    book.put_entry("a", 1)
    book.close()
    (root / "state.db").write_bytes(b"no database at all")
    rebuilt = rebuild(root, clock=clock)
    assert rebuilt.set_aside is not None
    assert (Path(rebuilt.set_aside) / "state.db").read_bytes() == b"no database at all"
    assert certificate(rebuilt.certificate)["surviving"][0]["error"]
    paths = []
    for _ in range(4):
        clock.advance(1)
        paths.append(Path(rebuild(root, clock=clock).certificate or "").parent)
    assert all((path / "certificate.html").exists() for path in paths)
    assert [(path / "state.db").exists() for path in paths] == [False, True, True, True]


def test_a_set_aside_state_holds_what_stood_in_its_wal(
    book: Book, root: Path, clock: FakeClock
) -> None:
    book.put_entry("a", 1)
    rebuilt = rebuild(root, clock=clock)
    kept = Path(rebuilt.set_aside or "") / "state.db"
    with sqlite3.connect(kept) as found:
        assert found.execute("select key, value from cache").fetchall() == [("a", "1")]
    assert book.entry("a")
    book.put_entry("b", 2)
    assert rebuild(root, clock=clock).keys == 2


def test_a_hole_makes_what_is_older_unknown_and_what_is_written_after_it_proven(
    tmp_path: Path,
) -> None:
    log = HandLog(tmp_path / "b")
    log.live([("put", "old", 1), ("put", "lost", 1), ("enqueue", "j", 0), ("put", "new", 2)])
    lose_line(log.root, 3)
    rebuilt = rebuild(log.root)
    told = certificate(rebuilt.certificate)
    assert (rebuilt.keys, rebuilt.unknown_keys, rebuilt.missing_events) == (2, 1, 1)
    assert told["unknown_keys"] == ["old"]
    assert told["keys"]["proven"] == 1
    assert "1 missing event may concern keys not listed here" in told["statements"]
    (hole,) = told["losses"]
    assert (hole["first_seq"], hole["last_seq"]) == (3, 3)
    assert (hole["after_at"], hole["before_at"]) == (
        "2026-03-01T00:00:02.000000Z",
        "2026-03-01T00:00:04.000000Z",
    )


def test_without_its_first_segment_a_log_gives_back_what_the_others_tell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = HandLog(tmp_path / "b")
    log.live([("put", "a", 1), ("enqueue", "j", 0), ("roll", "", 0), ("put", "b", 2)])
    segments(log.root)[0].unlink()
    assert main(["rebuild", "--json", "--book", str(log.root)]) == 4
    shown = json.loads(capsys.readouterr().out)
    assert (shown["keys"], shown["jobs"], shown["unknown_keys"]) == (1, 0, 0)
    assert [(hole["first_seq"], hole["last_seq"]) for hole in shown["holes"]] == [(1, 3)]
    with Book.open(log.root) as book:
        assert book.enqueue("a", 1).is_new


def test_what_only_state_db_knew_outlives_the_next_change_and_comes_back(
    book: Book, root: Path, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    book.put_entry("k", 1)
    old = book.enqueue("a", "old").job_id
    book.close()
    segments(root)[0].unlink()
    with Book.open(root, clock=clock) as again:
        new = again.enqueue("a", "new").job_id
        assert [again.job(old), again.entry("k")] == [None, None]
        assert len(again.told_losses()) == 1
    (kept,) = Layout(root).rebuilt.glob("*/state.db")
    assert str(kept) in caplog.text
    rebuild(root, source=kept, clock=clock)
    with Book.open(root, clock=clock) as again:
        found = [again.job(old), again.job(new), again.entry("k")]
        assert None not in found
        assert again.told_losses() == []
    assert not verify(Layout(root)).complete


def test_a_lost_end_begins_a_new_writer_anchored_to_what_is_left(
    book: Book, root: Path, clock: FakeClock
) -> None:
    for number in range(4):
        book.put_entry("k", number)
    book.close()
    path = segments(root)[0]
    write(path, lines(path)[:3])
    rebuilt = rebuild(root, clock=clock)
    told = certificate(rebuilt.certificate)
    assert (rebuilt.missing_events, rebuilt.unknown_keys) == (2, 1)
    assert told["losses"][0]["known_from"] == ["state.db"]
    assert told["surviving"][0]["differs"] == ["k"]
    with Book.open(root, clock=clock) as again:
        again.put_entry("k", "on")
    first = json.loads(lines(segments(root)[-1])[0])
    old = json.loads(lines(path)[0])["writer"]
    all_lines = [json.loads(line) for one in segments(root) for line in lines(one)]
    writer = old
    named = []
    for line in all_lines:
        writer = line["writer"] if line["event"] == "log.opened" else writer
        named.append((writer, line["seq"]))
    assert len(set(named)) == len(named)
    opened = next(line for line in all_lines if line.get("previous_writer") == old)
    assert opened["previous_seq"] == 3 and first["event"] == "log.opened"
    reasons = [problem.reason for problem in verify(Layout(root)).problems]
    assert not any("chain" in reason for reason in reasons)
    later = rebuild(root, clock=clock)
    assert (later.missing_events, later.unknown_keys) == (2, 0)


def test_an_edit_stays_in_doubt_in_every_later_rebuild(tmp_path: Path) -> None:
    log = HandLog(tmp_path / "b")
    log.live([("put", "a", 1), ("put", "b", 2), ("roll", "", 0), ("put", "c", 3)])
    path = segments(log.root)[0]
    write(path, [line.replace(b'"value":1', b'"value":9') for line in lines(path)])
    first, second = rebuild(log.root), rebuild(log.root)
    for rebuilt in (first, second):
        assert not rebuilt.complete
        assert certificate(rebuilt.certificate)["unknown_keys"] == ["a", "b"]
    assert first.edits[0].last_seq == 3


def test_a_checkpoint_that_saw_more_than_is_left_gives_it_back(
    book: Book, root: Path, clock: FakeClock
) -> None:
    for number in range(4):
        book.put_entry("k", number)
    checkpoints.make(book.layout, book.moment().wall())
    book.close()
    path = segments(root)[0]
    write(path, lines(path)[:3])
    rebuilt = rebuild(root, clock=clock)
    assert not rebuilt.complete
    assert (rebuilt.unknown_keys, bool(rebuilt.checkpoint)) == (0, True)
    told = certificate(rebuilt.certificate)["statements"]
    (newer,) = (one for one in told if "saw more than is left of the log" in one)
    assert newer in rebuilt.statements
    assert newer.startswith(
        f"the checkpoint {rebuilt.checkpoint} is newer than the log, which ends"
    )
    for _ in range(2):
        with Book.open(root, clock=clock) as again:
            entry = again.entry("k")
            assert entry is not None and entry.value == 3
        (root / "state.db").unlink()


def test_a_checkpoint_is_named_by_hand_also_where_all_of_the_log_is_lost(
    book: Book, root: Path, clock: FakeClock, tmp_path: Path
) -> None:
    book.put_entry("k", 7)
    job_id = book.enqueue("a", 1).job_id
    made = checkpoints.make(book.layout, book.moment().wall())
    book.close()
    kept = Path(shutil.copy(made.path, tmp_path))
    shutil.rmtree(root)
    (root / "log").mkdir(parents=True)
    with pytest.raises(BadInput, match="holds no segment"):
        rebuild(root, clock=clock)
    rebuilt = rebuild(root, source=kept, clock=clock)
    assert (rebuilt.keys, rebuilt.jobs, rebuilt.checkpoint) == (1, 1, made.path.name)
    (root / "state.db").unlink()
    with Book.open(root, clock=clock) as again:
        assert again.job(job_id) and again.entry("k")
        assert again.enqueue("a", 2).is_new


def test_a_checkpoint_of_another_book_is_refused(book: Book, root: Path, tmp_path: Path) -> None:
    book.put_entry("k", 7)
    with Book.open(tmp_path / "other") as other:
        other.put_entry("k", 1)
        made = checkpoints.make(other.layout, other.moment().wall())
    with pytest.raises(BadInput, match="is of another log"):
        rebuild(root, source=made.path)


def test_a_pruned_log_without_a_checkpoint_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    log = HandLog(tmp_path / "b")
    log.live([("put", "a", 1), ("roll", "", 0), ("put", "b", 2)])
    position = {"writer": log.writer, "seq": 2, "hash": "00" * 32, "segment": "", "offset": 0}
    anchor = {"position": position | {"ordinal": 2, "boot_id": ""}}
    ends = {log.writer: {"seq": 2, "hash": "00" * 32}}
    Layout(log.root).anchor.write_text(json.dumps(anchor | {"ends": ends}))
    before = sorted(log.root.rglob("*"))
    with pytest.raises(LogDamaged, match="no checkpoint is good"):
        rebuild(log.root)
    assert sorted(log.root.rglob("*")) == before


def test_a_dry_run_certifies_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = HandLog(tmp_path / "b")
    log.live([("put", "a", 1), ("put", "b", 2)])
    lose_line(log.root, 2)
    before = {path: path.read_bytes() for path in log.root.rglob("*") if path.is_file()}
    paper = tmp_path / "paper"
    words = ["rebuild", "--dry-run", "--certificate", str(paper), "--book", str(log.root)]
    assert main([*words, "--json"]) == 4
    shown = json.loads(capsys.readouterr().out)
    assert shown["dry_run"] and shown["keys"] == 1
    assert before == {path: path.read_bytes() for path in log.root.rglob("*") if path.is_file()}
    page = (paper / "certificate.html").read_text()
    assert "Something is not known" in page and shown["parity"] in page
    assert not any(word in page for word in ("http://", "https://", "<script", "src="))
    assert main(words) == 4
    told = capsys.readouterr().out
    assert "INCOMPLETE: 1 missing event may concern any key" in told
    assert "nothing was changed" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--from", "nowhere.db"], "there is no such file"),
        (["--from", "book.toml"], "is no checkpoint"),
        (["--certificate", "book.toml"], "is a file; name a folder"),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    told: str,
) -> None:
    log = HandLog(tmp_path / "b")
    (tmp_path / "book.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    before = sorted(log.root.rglob("*"))
    assert main(["rebuild", "--book", "b", *words]) == 2
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1
    assert sorted(log.root.rglob("*")) == before


def test_a_payload_that_the_log_was_not_to_keep_makes_the_answer_incomplete(root: Path) -> None:
    root.mkdir()
    (root / "book.toml").write_text('[log]\npayload = "digest"\n')
    with Book.open(root) as book:
        job_id = book.enqueue("a", {"secret": 1}).job_id
    rebuilt = rebuild(root)
    told = certificate(rebuilt.certificate)
    assert (rebuilt.complete, rebuilt.payloads_lost) == (False, 1)
    assert told["payloads_lost"] == [job_id]
    assert "payload = 'digest'" in told["withheld"][0]
