"""The log: torn tails, holes, edits, copies, new boots, and what verify says of each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from core_steps import claim, events, names, outcome, segments

from tallybook import Book
from tallybook.book import New, checkpoints
from tallybook.book.store import marks
from tallybook.errors import BadInput, LogDamaged
from tallybook.layout import Layout
from tallybook.log.chain import NO_HASH, link
from tallybook.log.folder import Seen
from tallybook.log.verify import Verification, verify
from tallybook.recover import rebuild
from tallybook.testing import FakeClock


def filled(root: Path, jobs: int = 5, clock: FakeClock | None = None) -> Path:
    """A closed book with some more done jobs; returns its last segment."""
    with Book.open(root, clock=clock or FakeClock()) as book:
        for number in range(jobs):
            book.enqueue("a", {"n": number})
            book.settle(outcome(book, claim(book)))
    return segments(root)[-1]


def checked(root: Path) -> Verification:
    """What verify says, with the mark of state.db where that is left."""
    return verify(Layout(root), marks(Layout(root)))


def test_every_line_stands_alone_and_counts_up_from_one(tmp_path: Path) -> None:
    filled(tmp_path / "b")
    lines = events(tmp_path / "b")
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert {line["v"] for line in lines} == {1}
    assert all(line["occurred_at"].endswith("Z") and line["boot_us"] > 0 for line in lines)


def test_the_hash_chain_goes_over_every_line(tmp_path: Path) -> None:
    segment = filled(tmp_path / "b")
    hash_so_far = NO_HASH
    for line in segment.read_bytes().splitlines():
        hash_so_far = link(hash_so_far, line)
    with Book.read(tmp_path / "b") as book:
        assert book.position().hash == hash_so_far


def test_jq_and_tail_can_read_the_open_segment(tmp_path: Path) -> None:
    with Book.open(tmp_path / "b") as book:
        book.enqueue("a", {"n": 1})
        (segment,) = segments(book)
        tail = subprocess.run(["tail", "-n", "1", segment], capture_output=True, check=True)
        assert json.loads(tail.stdout)["event"] == "job.enqueued"


def test_a_torn_tail_is_cut_told_and_followed_by_a_line_of_its_own(tmp_path: Path) -> None:
    segment = filled(tmp_path / "b")
    before = len(events(tmp_path / "b"))
    with segment.open("ab") as file:
        file.write(b'{"v":1,"seq":17,"event":"job.enq')
    assert checked(tmp_path / "b").complete
    assert "torn tail of 32 bytes" in checked(tmp_path / "b").warnings[0]
    with Book.open(tmp_path / "b", clock=FakeClock()) as book:
        book.enqueue("a", "next")
    added = events(tmp_path / "b")[before:]
    assert [line["event"] for line in added] == ["log.repaired", "job.enqueued"]
    assert (added[0]["reason"], added[0]["bytes"]) == ("torn_tail", 32)
    assert checked(tmp_path / "b").complete


PAGE = 4096
FIRST, MIDDLE, LAST = range(3)


def hole(root: Path, page: int, *, then: str = "") -> tuple[Path, int]:
    """A book whose last write but ``then`` has zeros for one of its pages; its segment, and where
    that write begins."""
    clock = FakeClock()
    with Book.open(root, clock=clock) as book:
        book.enqueue("a", "first")
        (segment,) = segments(book)
        begins = segment.stat().st_size
        clock.advance(1)
        book.enqueue_many([New("a", "x" * 600) for _ in range(30)])
        ends = segment.stat().st_size
        clock.advance(1)
        if then == "enqueue":
            book.enqueue("a", "acknowledged")
        if then == "checkpoint":
            checkpoints.make(book.layout, clock.moment().wall())
    pages = range(begins // PAGE, ends // PAGE + 1)
    start = max(begins, {FIRST: pages[0], MIDDLE: pages[2], LAST: pages[-1]}[page] * PAGE)
    data = bytearray(segment.read_bytes())
    end = min(start // PAGE * PAGE + PAGE, ends)
    data[start:end] = bytes(end - start)
    segment.write_bytes(data)
    for path in root.glob("state.db*"):
        path.unlink()
    return segment, begins


@pytest.mark.parametrize("page", [FIRST, MIDDLE, LAST])
def test_a_page_that_is_missing_of_a_write_that_was_not_synced_is_cut_with_all_behind_it(
    tmp_path: Path, page: int
) -> None:
    root = tmp_path / "b"
    segment, begins = hole(root, page)
    size = segment.stat().st_size
    assert checked(root).complete
    with Book.open(root, clock=FakeClock()) as book:
        kept = book.counts()["a"]["pending"]
        book.enqueue("a", "next")
    (told,) = [line for line in events(root) if line["event"] == "log.repaired"]
    assert (kept == 1) == (page == FIRST)
    assert told["reason"] == "torn_tail"
    assert (told["bytes"] == size - begins) == (page == FIRST)
    assert checked(root).complete


@pytest.mark.parametrize(
    ("page", "then"),
    [*((page, "enqueue") for page in (FIRST, MIDDLE, LAST)), (MIDDLE, "checkpoint")],
)
def test_a_page_that_is_missing_of_what_was_acknowledged_is_damage(
    tmp_path: Path, page: int, then: str
) -> None:
    segment, _ = hole(tmp_path / "b", page, then=then)
    for path in (tmp_path / "b" / "checkpoints").glob("*.db"):
        path.unlink()
    with pytest.raises(LogDamaged, match=rf"{segment.name} byte \d+: not JSON"):
        Book.open(tmp_path / "b")
    assert not checked(tmp_path / "b").complete


def test_a_new_boot_opens_a_new_segment_of_the_same_writer(
    tmp_path: Path, clock: FakeClock
) -> None:
    filled(tmp_path / "b", clock=clock)
    clock.reboot()
    with Book.open(tmp_path / "b", clock=clock) as book:
        book.enqueue("a", 1)
    opened = [line for line in events(tmp_path / "b") if line["event"] == "log.opened"]
    assert len(segments(tmp_path / "b")) == 2
    assert opened[0]["writer"] == opened[1]["writer"]
    assert opened[1]["boot_id"] == "boot-2"
    assert checked(tmp_path / "b").complete


def test_a_full_segment_is_followed_by_the_next(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "book.toml").write_text("[log]\nsegment_bytes = 2000\n")
    filled(tmp_path / "b", jobs=20)
    assert len(segments(tmp_path / "b")) > 5
    found = checked(tmp_path / "b")
    assert (found.complete, found.lines) == (True, len(events(tmp_path / "b")))


def edit(segment: Path) -> None:
    """Change one character of an early line."""
    data = segment.read_bytes()
    segment.write_bytes(data.replace(b'"n":1', b'"n":9', 1))


def drop_line(segment: Path) -> None:
    """Take out the fourth line."""
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join(lines[:3] + lines[4:]))


def tear_middle(segment: Path) -> None:
    """Lose the second half of the fourth line, newline and all: two lines fuse."""
    lines = segment.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3][: len(lines[3]) // 2]
    segment.write_bytes(b"".join(lines))


def lose_end(segment: Path) -> None:
    """Lose the last two lines."""
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join(lines[:-2]))


@pytest.mark.parametrize("spoil", [edit, drop_line, tear_middle, lose_end])
def test_verify_finds_every_kind_of_damage(tmp_path: Path, spoil: object) -> None:
    segment = filled(tmp_path / "b")
    assert checked(tmp_path / "b").complete
    assert callable(spoil)
    spoil(segment)
    found = checked(tmp_path / "b")
    assert not found.complete
    assert found.problems[0].reason


def test_verify_finds_a_missing_segment(tmp_path: Path, clock: FakeClock) -> None:
    filled(tmp_path / "b", clock=clock)
    for _ in range(2):
        clock.reboot()
        filled(tmp_path / "b", clock=clock)
    assert len(segments(tmp_path / "b")) == 3
    segments(tmp_path / "b")[1].unlink()
    assert "should stand before it" in checked(tmp_path / "b").problems[0].reason


def test_a_torn_line_in_the_middle_is_named_when_the_state_is_lost(tmp_path: Path) -> None:
    segment = filled(tmp_path / "b")
    tear_middle(segment)
    for path in (tmp_path / "b").glob("state.db*"):
        path.unlink()
    with pytest.raises(LogDamaged, match=rf"{segment.name} byte \d+: not JSON"):
        Book.open(tmp_path / "b")


def test_a_rebuild_folds_what_a_damaged_log_has_left_and_says_what_is_lost(
    tmp_path: Path,
) -> None:
    root = tmp_path / "b"
    tear_middle(filled(root))
    for path in root.glob("state.db*"):
        path.unlink()
    rebuilt = rebuild(root)
    assert (rebuilt.complete, rebuilt.quarantined, rebuilt.gaps) == (False, 1, 1)
    assert [(hole.first_seq, hole.last_seq) for hole in rebuilt.holes] == [(4, 5)]
    repaired = [line for line in events_that_parse(root) if line["event"] == "log.repaired"]
    assert [(line["first_lost_seq"], line["last_lost_seq"]) for line in repaired] == [(4, 5)]
    again = rebuild(root)
    assert (again.parity, again.jobs, again.gaps) == (rebuilt.parity, rebuilt.jobs, 1)
    with Book.open(root) as book:
        assert book.enqueue("a", "life goes on").is_new


def events_that_parse(root: Path) -> list[dict[str, object]]:
    """The lines of a damaged log that are whole."""
    found = []
    for segment in segments(root):
        for line in segment.read_bytes().splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found


def test_a_lost_end_starts_a_new_writer_and_no_sequence_is_used_twice(tmp_path: Path) -> None:
    root = tmp_path / "b"
    segment = filled(root)
    old = events(root)
    lose_end(segment)
    with Book.open(root, clock=FakeClock()) as book:
        book.enqueue("a", "after the loss")
    added = events(root)[len(old) - 2 :]
    opened, repaired, enqueued = added
    assert opened["writer"] != old[0]["writer"]
    assert (opened["previous_writer"], opened["previous_seq"]) == (old[0]["writer"], len(old) - 2)
    assert (repaired["reason"], repaired["writer"]) == ("shortened", old[0]["writer"])
    assert (repaired["first_lost_seq"], repaired["last_lost_seq"]) == (len(old) - 1, len(old))
    assert enqueued["seq"] == 3


def test_a_copied_book_goes_on_as_another_writer(tmp_path: Path) -> None:
    filled(tmp_path / "b")
    shutil.copytree(tmp_path / "b", tmp_path / "copy")
    with Book.open(tmp_path / "copy", clock=FakeClock()) as book:
        book.enqueue("a", "in the copy")
    lines = events(tmp_path / "copy")
    writers = [line["writer"] for line in lines if line["event"] == "log.opened"]
    assert len(set(writers)) == 2
    assert next(e for e in lines if e["event"] == "log.repaired")["reason"] == "copied"
    assert checked(tmp_path / "copy").complete
    assert checked(tmp_path / "b").complete


def test_a_book_is_private_to_its_owner(tmp_path: Path) -> None:
    filled(tmp_path / "b")
    modes = {
        path.relative_to(tmp_path): path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")
    }
    folders = {mode for path, mode in modes.items() if (tmp_path / path).is_dir()}
    files = {mode for path, mode in modes.items() if (tmp_path / path).is_file()}
    assert (folders, files) == ({0o700}, {0o600})


def test_a_log_that_is_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "b")
    (tmp_path / "b" / "log").rename(tmp_path / "elsewhere")
    (tmp_path / "b" / "log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match="symbolic link"):
        Book.open(tmp_path / "b")


def test_a_database_of_another_program_in_the_way_is_not_touched(tmp_path: Path) -> None:
    import sqlite3

    (tmp_path / "b" / "log").mkdir(parents=True)
    connection = sqlite3.connect(tmp_path / "b" / "state.db")
    connection.execute("create table accounts (id)")
    connection.commit()
    connection.close()
    before = (tmp_path / "b" / "state.db").read_bytes()
    with pytest.raises(BadInput, match="another program"):
        Book.open(tmp_path / "b")
    assert (tmp_path / "b" / "state.db").read_bytes() == before


def test_a_state_that_is_no_database_is_folded_anew(tmp_path: Path) -> None:
    filled(tmp_path / "b")
    (tmp_path / "b" / "state.db").write_bytes(b"rubbish " * 1000)
    with Book.open(tmp_path / "b") as book:
        assert book.counts() == {"a": {"done": 5}}


def test_reading_a_book_changes_no_byte_of_it(tmp_path: Path) -> None:
    filled(tmp_path / "b")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with Book.read(tmp_path / "b") as book:
        assert book.counts() == {"a": {"done": 5}}
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_names_of_all_events_follow_the_flow(tmp_path: Path) -> None:
    filled(tmp_path / "b", jobs=1)
    assert names(tmp_path / "b") == ["job.enqueued", "job.leased", "job.done"]


@pytest.mark.parametrize(
    ("age_ns", "proves"),
    [(10_000_000, False), (900_000_000, True), (2_000_000_000, False), (9_000_000_000, True)],
)
def test_the_time_of_a_folder_proves_that_no_name_came_only_once_it_is_older_than_a_tick(
    tmp_path: Path, age_ns: int, proves: bool
) -> None:
    whole_s = time.time_ns() // 1_000_000_000 * 1_000_000_000
    changed_ns = whole_s - age_ns if age_ns > 1_000_000_000 else time.time_ns() - age_ns | 1
    os.utime(tmp_path, ns=(changed_ns, changed_ns))
    seen = Seen(tmp_path)
    seen.note(seen.changed_ns())
    assert (seen.stands(), seen.is_noted(changed_ns)) == (proves, True)
    (tmp_path / "new").touch()
    assert not seen.stands()
