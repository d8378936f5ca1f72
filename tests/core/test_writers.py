"""Who writes: a copy, a restore, a snapshot and a shortened log each begin a new life."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from core_steps import claim, events, outcome, segments

from tallybook import Book
from tallybook.book import checkpoints
from tallybook.book.opening import marks
from tallybook.layout import Layout
from tallybook.log import identity
from tallybook.log.verify import verify
from tallybook.testing import FakeClock
from tallybook.worker.metrics import Counters, Recorder


def worked(root: Path, jobs: int = 5, *, mark: bool = False, keep: bool = False) -> Layout:
    """A closed book with some more done jobs; with ``mark`` latest.json knows its end, with
    ``keep`` a checkpoint does."""
    with Book.open(root, clock=FakeClock()) as book:
        for number in range(jobs):
            book.enqueue("a", {"n": number})
            book.settle(outcome(book, claim(book)))
        if mark:
            Recorder(book, "w", Counters()).record(0)
        if keep:
            checkpoints.make(book.layout, book.moment().wall())
    return Layout(root)


def writers(root: Path) -> list[str]:
    """The writers of a log in the order of history."""
    return list(dict.fromkeys(e["writer"] for e in events(root) if e["event"] == "log.opened"))


def repaired(root: Path) -> list[dict[str, Any]]:
    """What the log tells of its losses."""
    return [event for event in events(root) if event["event"] == "log.repaired"]


def last_seq(root: Path) -> int:
    """The last line of the log."""
    return int(events(root)[-1]["seq"])


def go_on(root: Path) -> None:
    """One more job, in a book opened anew."""
    with Book.open(root, clock=FakeClock()) as book:
        assert book.enqueue("a", "on").is_new


def no_seq_twice(root: Path) -> bool:
    """Whether each writer counts up from 1 with no number used twice."""
    seen: dict[str, list[int]] = {}
    for path in segments(root):
        lines = [json.loads(line) for line in path.read_bytes().splitlines()]
        seen.setdefault(lines[0]["writer"], []).extend(line["seq"] for line in lines)
    return all(found == list(range(1, len(found) + 1)) for found in seen.values())


def test_a_copy_is_another_writer_chained_to_the_first(tmp_path: Path) -> None:
    worked(tmp_path / "b")
    shutil.copytree(tmp_path / "b", tmp_path / "copy")
    end = last_seq(tmp_path / "copy")
    go_on(tmp_path / "copy")
    go_on(tmp_path / "b")
    first, second = writers(tmp_path / "copy")
    assert writers(tmp_path / "b") == [first]
    opened = next(e for e in events(tmp_path / "copy") if e.get("writer") == second)
    assert (opened["previous_writer"], opened["previous_seq"]) == (first, end)
    assert [told["reason"] for told in repaired(tmp_path / "copy")] == ["copied"]
    for name in ("b", "copy"):
        assert verify(Layout(tmp_path / name), marks(Layout(tmp_path / name))).complete


def test_a_snapshot_mounted_elsewhere_has_another_device_and_is_another_writer(
    tmp_path: Path,
) -> None:
    layout = worked(tmp_path / "b")
    raw = json.loads(layout.writer.read_bytes())
    text = json.dumps(raw | {"device": raw["device"] + 1})
    with layout.writer.open("r+") as file:
        file.write(text)
        file.truncate()
    go_on(layout.root)
    assert len(writers(layout.root)) == 2


def test_another_machine_is_another_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = worked(tmp_path / "b")
    (tmp_path / "machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    monkeypatch.setattr(identity, "MACHINE_ID", tmp_path / "machine-id")
    go_on(layout.root)
    go_on(layout.root)
    assert len(writers(layout.root)) == 2
    assert b"0123456789abcdef" not in layout.writer.read_bytes()


def test_a_folder_put_back_from_a_backup_is_another_writer(tmp_path: Path) -> None:
    layout = worked(tmp_path / "b")
    shutil.copytree(layout.root, tmp_path / "backup")
    shutil.rmtree(layout.root)
    shutil.copytree(tmp_path / "backup", layout.root)
    go_on(layout.root)
    assert len(writers(layout.root)) == 2
    assert [told["reason"] for told in repaired(layout.root)] == ["copied"]


def put_back(backup: Path, layout: Layout) -> None:
    """Overwrite the log and the state with older ones, each file in its place: inodes stay."""
    for path in (*(backup / "log").iterdir(), backup / "state.db"):
        target = layout.log / path.name if path.parent.name == "log" else layout.state
        with target.open("r+b") as file:
            file.write(path.read_bytes())
            file.truncate()


@pytest.mark.parametrize("witness", ["latest.json", "checkpoint", "state.db"])
def test_an_older_log_put_back_over_a_newer_one_is_another_writer_and_names_what_is_lost(
    tmp_path: Path, witness: str
) -> None:
    layout = worked(tmp_path / "b")
    shutil.copytree(layout.root, tmp_path / "backup")
    end = last_seq(layout.root)
    worked(layout.root, mark=witness == "latest.json", keep=witness == "checkpoint")
    newest = last_seq(layout.root)
    (old,) = writers(layout.root)
    newer = layout.state.read_bytes()
    put_back(tmp_path / "backup", layout)
    if witness == "state.db":
        layout.state.write_bytes(newer)
    go_on(layout.root)
    assert writers(layout.root)[0] == old
    assert len(writers(layout.root)) == 2
    (told,) = repaired(layout.root)
    assert (told["reason"], told["writer"]) == ("shortened", old)
    assert (told["first_lost_seq"], told["last_lost_seq"]) == (end + 1, newest)
    assert no_seq_twice(layout.root)
    go_on(layout.root)
    assert len(repaired(layout.root)) == 1
    assert not verify(layout, marks(layout)).complete


def cut_lines(layout: Layout) -> None:
    """Lose the last three lines."""
    path = segments(layout.root)[-1]
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-3]))


def cut_half_a_line(layout: Layout) -> None:
    """Lose the end of the last line, and two before it."""
    path = segments(layout.root)[-1]
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2])[:-9])


def lose_segments(layout: Layout) -> None:
    """Lose every segment; the rest of the log folder stays."""
    for path in segments(layout.root):
        path.unlink()


def lose_log(layout: Layout) -> None:
    """Lose everything in the log folder."""
    for path in layout.log.iterdir():
        path.unlink()


@pytest.mark.parametrize("shorten", [cut_lines, cut_half_a_line, lose_segments, lose_log])
@pytest.mark.parametrize("witness", ["latest.json", "checkpoint", "state.db"])
def test_a_shortened_log_begins_a_new_writer_and_names_the_lost_range(
    tmp_path: Path, shorten: Callable[[Layout], None], witness: str
) -> None:
    layout = worked(tmp_path / "b", mark=witness == "latest.json", keep=witness == "checkpoint")
    (old,), newest = writers(layout.root), last_seq(layout.root)
    shorten(layout)
    left = len(events(layout.root)) if shorten is cut_lines else 0
    if witness != "state.db":
        layout.state.unlink()
    go_on(layout.root)
    assert writers(layout.root)[-1] != old
    told = [one for one in repaired(layout.root) if one.get("first_lost_seq")]
    assert [(one["writer"], one["last_lost_seq"]) for one in told] == [(old, newest)]
    if shorten is cut_lines:
        assert told[0]["first_lost_seq"] == left + 1
    assert no_seq_twice(layout.root)
    go_on(layout.root)
    assert len([one for one in repaired(layout.root) if one.get("first_lost_seq")]) == 1


def test_a_checkpoint_that_is_ahead_of_the_log_is_no_state_to_go_on_with(tmp_path: Path) -> None:
    layout = worked(tmp_path / "b", keep=True)
    cut_lines(layout)
    assert not list(checkpoints.good(layout))
    layout.state.unlink()
    with Book.open(layout.root, clock=FakeClock()) as book:
        assert book.counts() == {"a": {"done": 4}}
