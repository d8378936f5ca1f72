"""What the archive holds may go from the log: prunes that rest on it, and both commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ops_logs import Log
from test_compact import asked, worked

from tallybook import Book, ops
from tallybook.book.pruning import prune
from tallybook.cli.main import main
from tallybook.ops.compacting import compact
from tallybook.recover import rebuild
from tallybook.testing import FakeClock


def test_after_a_prune_of_archived_segments_the_answers_are_whole(tmp_path: Path) -> None:
    place, out = worked(tmp_path / "book"), tmp_path / "out"
    compact(place.root, out)
    raw = asked(place.root, tmp_path / "none")
    with Book.open(place.root, clock=FakeClock()) as book:
        told = prune(book, archive=out / "archive")
    assert told.stopped_at is None and len(told.segments) > 3
    assert len(place.segments()) <= 2
    after = asked(place.root, out)
    begun = len(after["events"]) - len(raw["events"])
    assert after["events"][: -begun or None] == raw["events"]
    assert after["notes"] == []
    with ops.open(place.root, out=out) as warehouse:
        assert warehouse.warnings == []
    with ops.open(place.root, out=tmp_path / "none") as warehouse:
        assert warehouse.warnings[0].startswith("the log was pruned: events 1 to ")
    assert rebuild(place.root).complete
    assert compact(place.root, out).left == []


def spoil_hash(entry: dict[str, Any]) -> None:
    entry["hash"] = "00" * 32


def spoil_lines(entry: dict[str, Any]) -> None:
    entry["hash"] = None


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (spoil_hash, "the archive was made of other lines"),
        (spoil_lines, "the archive does not have each of its lines"),
        ("flip", "its file in the archive is damaged"),
        ("lose", "its file in the archive is missing"),
        ("never", "it is not in the archive"),
    ],
)
def test_a_prune_stops_at_the_first_segment_that_the_archive_does_not_prove(
    tmp_path: Path, spoil: Any, said: str
) -> None:
    place, out = worked(tmp_path / "book"), tmp_path / "out"
    second = compact(place.root, out).made[1].segment
    path = out / "archive" / second.replace(".ndjson", ".json")
    if callable(spoil):
        entry = json.loads(path.read_bytes())
        spoil(entry)
        path.write_text(json.dumps(entry))
    elif spoil == "flip":
        path.with_suffix(".parquet").write_bytes(path.with_suffix(".parquet").read_bytes()[::-1])
    else:
        path.with_suffix(".parquet" if spoil == "lose" else ".json").unlink()
    with Book.open(place.root, clock=FakeClock()) as book:
        told = prune(book, archive=out / "archive", dry_run=True)
        assert [cut.segment for cut in told.segments] == [place.segments()[0].name[:-4]]
        assert told.stopped_at == f"{second}: {said}"


def test_compact_and_prune_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = worked(tmp_path / "book")
    monkeypatch.chdir(tmp_path)
    assert main(["log", "prune", "--archived"]) == 2
    assert "make one with 'tallybook compact'" in capsys.readouterr().err
    assert main(["compact"]) == 0
    told = capsys.readouterr().out
    assert "compacted, 0 kept; the archive is tallybook-out" in told
    assert main(["compact", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["compacted"], shown["left"], shown["quarantined"]) == ([], [], 0)
    assert shown["kept"] == len(place.segments()) - 1
    assert main(["log", "prune", "--archived", "--json"]) == 0
    pruned = json.loads(capsys.readouterr().out)
    assert pruned["stopped_at"] is None and len(pruned["segments"]) == shown["kept"]


def traced(
    capsys: pytest.CaptureFixture[str], book: Path, name: str, out: Path
) -> tuple[int, Any, str]:
    code = main(["trace", name, "--json", "--book", str(book), "--out", str(out)])
    shown = capsys.readouterr()
    return code, shown.out and json.loads(shown.out), shown.err


def test_a_trace_finds_in_the_archive_what_the_log_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place, out = worked(tmp_path / "book"), tmp_path / "out"
    with Book.open(place.root, clock=FakeClock()) as book:
        name = book.jobs(limit=1)[0].job_id
    whole = traced(capsys, place.root, name, out)
    compact(place.root, out)
    with Book.open(place.root, clock=FakeClock()) as book:
        prune(book, archive=out / "archive")
    assert traced(capsys, place.root, name, out) == whole
    assert len(whole[1]["events"]) == 3 and whole[::2] == (0, "")
    code, _, said = traced(capsys, place.root, name, tmp_path / "none")
    assert code == 2 and said.count("\n") == 1 and "name the folder" in said
    monkeypatch.setattr("tallybook.cli.trace.find_spec", lambda _: None)
    assert "with the extra ops: pip install" in traced(capsys, place.root, name, out)[2]


def test_a_trace_goes_on_from_the_archive_to_the_log_and_without_it_lacks_the_beginning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, clock = tmp_path / "book", FakeClock()
    with Book.open(root, clock=clock) as book:
        job_id = book.enqueue("a", 1.5, delay_s=9, correlation_id="c").job_id
    clock.reboot()
    with Book.open(root, clock=clock) as book:
        book.steer("cancel", [job_id], "asked")
        whole = traced(capsys, root, job_id, tmp_path)
        compact(root, tmp_path)
        assert prune(book, archive=tmp_path / "archive").segments
    for name in (job_id, "c"):
        assert traced(capsys, root, name, tmp_path)[1]["events"] == whole[1]["events"]
    code, shown, said = traced(capsys, root, job_id, tmp_path / "none")
    assert (code, shown["complete"]) == (4, False)
    assert [event["event"] for event in shown["events"]] == ["job.cancelled"]
    assert "the log was pruned, and of 2 events there is nothing in" in said


def test_a_compaction_of_lines_that_cannot_be_read_exits_with_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = Log(tmp_path / "book")
    log.raw(b"not an event\n")
    log.open_segment(2)
    given = ["compact", "--book", str(tmp_path / "book"), "--out", str(tmp_path / "out")]
    assert main(given) == 4
    assert "INCOMPLETE: 1 line cannot be read" in capsys.readouterr().out
    (tmp_path / "file").touch()
    assert main([*given[:-1], str(tmp_path / "file")]) == 3
    assert "cannot compact: " in capsys.readouterr().err
