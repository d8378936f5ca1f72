"""Segments: closed by size, age and boot; compressed with nobody waiting; read all the same."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from core_steps import claim, events, outcome, segments

from tallybook import Book, packed
from tallybook.book.folding import fold_history
from tallybook.book.store import marks
from tallybook.layout import Layout
from tallybook.log import manifest, writer
from tallybook.log.compress import compress_closed
from tallybook.log.durable import hooked
from tallybook.log.reader import history
from tallybook.log.verify import Verification, verify
from tallybook.recover import rebuild
from tallybook.testing import FakeClock

SMALL = "[log]\nsegment_bytes = 2000\n"


def worked(root: Path, jobs: int = 20, settings: str = SMALL) -> Layout:
    """A closed book of some segments."""
    root.mkdir(exist_ok=True)
    (root / "book.toml").write_text(settings)
    with Book.open(root, clock=FakeClock()) as book:
        for number in range(jobs):
            book.enqueue("a", {"n": number})
            book.settle(outcome(book, claim(book)))
    return Layout(root)


def seen(layout: Layout) -> list[tuple[int, str, bytes]]:
    """The whole history: sequences, names, and the chain."""
    return [(event.seq, event.name, at.hash) for event, at in history(layout)]


def checked(layout: Layout) -> Verification:
    """What verify says."""
    return verify(layout, marks(layout))


def archives(layout: Layout) -> list[Path]:
    """The archives of a log."""
    return sorted(layout.log.glob("*.zst"))


def test_closed_segments_are_compressed_and_the_open_one_stays_plain(tmp_path: Path) -> None:
    layout = worked(tmp_path / "b")
    before, whole = seen(layout), checked(layout)
    names = [path.name for path in segments(tmp_path / "b")]
    assert compress_closed(layout) == names[:-1]
    assert [path.name for path in layout.log.glob("*.ndjson")] == names[-1:]
    assert [path.name for path in archives(layout)] == [f"{name}.zst" for name in names[:-1]]
    assert seen(layout) == before
    assert (checked(layout).complete, checked(layout).lines) == (True, whole.lines)
    assert compress_closed(layout) == []


def test_a_manifest_says_what_its_archive_holds(tmp_path: Path) -> None:
    layout = worked(tmp_path / "b")
    plain = {path.name: path.read_bytes() for path in segments(tmp_path / "b")}
    compress_closed(layout)
    count = 0
    for found in manifest.read_all(layout):
        text = plain[found.segment]
        lines = text.splitlines()
        assert (found.lines, found.bytes) == (len(lines), len(text))
        assert found.last_seq - found.first_seq + 1 == found.lines
        assert json.loads(lines[-1])["occurred_at"] == found.last_occurred_at
        with packed.reading(layout.log / f"{found.segment}.zst") as file:
            assert file.read() == text
        count += 1
    assert count == len(plain) - 1


def test_the_zstd_tool_reads_an_archive(tmp_path: Path) -> None:
    if not shutil.which("zstd"):
        pytest.skip("there is no zstd on this machine")
    layout = worked(tmp_path / "b")
    text = segments(tmp_path / "b")[0].read_bytes()
    compress_closed(layout, limit=1)
    (archive,) = archives(layout)
    assert subprocess.run(["zstd", "-dc", archive], capture_output=True).stdout == text


def test_a_compressed_book_works_on_is_rebuilt_and_folds_to_the_same(tmp_path: Path) -> None:
    layout = worked(tmp_path / "b")
    before, _ = fold_history(layout)
    compress_closed(layout)
    for path in layout.root.glob("state.db*"):
        path.unlink()
    assert rebuild(layout.root).complete
    with Book.open(layout.root, clock=FakeClock()) as book:
        assert {job.job_id for job in book.jobs(limit=1000)} == set(before.jobs)
        assert book.enqueue("a", "more").is_new
    assert checked(layout).complete


COMPRESS_AND_DIE = """
import os, sys
from pathlib import Path
from tallybook.layout import Layout
from tallybook.log.compress import compress_closed
from tallybook.log.durable import hooked
left = [int(sys.argv[2])]
def die(kind, name):
    if left[0] == 0:
        print(kind, name, flush=True)
        os.kill(os.getpid(), 9)
    left[0] -= 1
with hooked(die):
    compress_closed(Layout(Path(sys.argv[1])), limit=1)
"""
STEPS = [
    "sync archive",
    "rename archive",
    "write manifest",
    "sync manifest",
    "rename manifest",
    "sync manifest folder",
]


@pytest.mark.parametrize("step", range(len(STEPS)))
def test_a_kill_at_any_step_of_a_compression_leaves_a_readable_log_and_is_made_good(
    tmp_path: Path, step: int
) -> None:
    layout = worked(tmp_path / "b")
    before = seen(layout)
    command = [sys.executable, "-c", COMPRESS_AND_DIE, layout.root, str(step)]
    killed = subprocess.run(command, capture_output=True, text=True)
    assert (killed.returncode, killed.stdout.strip()) == (-9, STEPS[step])
    assert seen(layout) == before
    assert checked(layout).complete
    compress_closed(layout)
    assert seen(layout) == before
    assert checked(layout).complete
    assert len(list(layout.log.glob("*.ndjson"))) == 1
    assert not list(layout.log.glob(".*"))


def test_a_segment_that_another_process_compresses_is_passed_over(tmp_path: Path) -> None:
    layout = worked(tmp_path / "b")
    first = segments(tmp_path / "b")[0]
    with first.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert first.name not in compress_closed(layout)
    assert compress_closed(layout) == [first.name]


def test_a_listed_segment_that_was_compressed_meanwhile_is_read_all_the_same(
    tmp_path: Path,
) -> None:
    layout = worked(tmp_path / "b")
    before = seen(layout)
    walk = history(layout)
    first = [next(walk) for _ in range(3)]
    compress_closed(layout)
    rest = [*first, *walk]
    assert [(event.seq, event.name, at.hash) for event, at in rest] == before


def test_a_damaged_segment_is_left_as_it_is(tmp_path: Path) -> None:
    layout = worked(tmp_path / "b")
    first = segments(tmp_path / "b")[0]
    first.write_bytes(first.read_bytes().replace(b'"n":1', b'"n":9', 1))
    assert first.name not in compress_closed(layout)
    assert first.exists()
    assert not checked(layout).complete


def rewrite(archive: Path, text: bytes) -> None:
    """Make another archive of ``text``."""
    with archive.open("wb") as target:
        import io

        packed.pack(io.BytesIO(text), target)


def edit_archive(layout: Layout) -> None:
    """Change a line inside an archive."""
    archive = archives(layout)[1]
    with packed.reading(archive) as file:
        text = file.read()
    rewrite(archive, text.replace(b'"event":"job.done"', b'"event":"job.dead"', 1))


def cut_archive(layout: Layout) -> None:
    """Lose the second half of an archive."""
    archive = archives(layout)[1]
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])


def lose_archive(layout: Layout) -> None:
    """Lose an archive; its manifest stays."""
    archives(layout)[1].unlink()


def lose_last_segments(layout: Layout) -> None:
    """Lose the open segment and the archive before it; one manifest still knows them."""
    for path in [*layout.log.glob("*.ndjson"), archives(layout)[-1]]:
        path.unlink()


def edit_manifest(layout: Layout) -> None:
    """Change what a manifest says of its lines."""
    path = layout.manifest(archives(layout)[1].name.removesuffix(".zst"))
    raw = json.loads(path.read_bytes())
    path.write_text(json.dumps(raw | {"lines": raw["lines"] + 1}))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (edit_archive, "not the archive of its manifest"),
        (cut_archive, "damaged archive"),
        (lose_archive, "should stand before it"),
        (lose_last_segments, "lost end: .*manifest.json saw"),
        (edit_manifest, "lines is"),
    ],
)
def test_verify_finds_every_kind_of_damage_to_an_archive(
    tmp_path: Path, spoil: object, words: str
) -> None:
    layout = worked(tmp_path / "b")
    compress_closed(layout)
    assert checked(layout).complete
    assert callable(spoil)
    spoil(layout)
    (layout.root / "state.db").unlink()
    import re

    reasons = [problem.reason for problem in checked(layout).problems]
    assert [reason for reason in reasons if re.search(words, reason)], reasons


def test_a_rebuild_folds_what_a_cut_archive_still_holds(tmp_path: Path) -> None:
    layout = worked(tmp_path / "b")
    compress_closed(layout)
    cut_archive(layout)
    rebuilt = rebuild(layout.root)
    assert not rebuilt.complete
    assert rebuilt.quarantined == 1
    with Book.open(layout.root, clock=FakeClock()) as book:
        assert book.enqueue("a", "on").is_new


def test_an_old_segment_is_followed_by_the_next_by_boot_time_whatever_the_wall_clock_says(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    with Book.open(tmp_path / "b", clock=clock) as book:
        book.enqueue("a", 1)
        clock.jump(10 * 86400)
        book.enqueue("a", 2)
        assert len(segments(book)) == 1
        clock.advance(86399)
        book.enqueue("a", 3)
        assert len(segments(book)) == 1
        clock.advance(1)
        book.enqueue("a", 4)
        assert len(segments(book)) == 2
    assert checked(Layout(tmp_path / "b")).complete


def test_a_segment_compressed_since_it_was_listed_is_not_taken_for_a_torn_one(
    tmp_path: Path,
) -> None:
    gone = tmp_path / "0a1b2c3d-000000000001.ndjson"
    assert writer._size(gone) == 0
    assert writer._has_whole_line(gone)


def test_writers_and_compressors_at_once_lose_and_mix_no_line(tmp_path: Path) -> None:
    root = tmp_path / "b"
    root.mkdir()
    (root / "book.toml").write_text("[log]\nsegment_bytes = 4000\n")
    write = """
import sys
from tallybook import Book
with Book.open(sys.argv[1]) as book:
    for number in range(150):
        book.enqueue("a", {"n": number, "by": sys.argv[2]})
"""
    squeeze = """
import sys
from pathlib import Path
from tallybook.layout import Layout
from tallybook.log.compress import compress_closed
layout = Layout(Path(sys.argv[1]))
print("ready", flush=True)
while not (layout.root / "stop").exists():
    compress_closed(layout)
"""
    Book.open(root).close()
    command = [sys.executable, "-c"]
    squeezers = [subprocess.Popen([*command, squeeze, root]) for _ in range(2)]
    writers = [subprocess.Popen([*command, write, root, str(n)]) for n in range(2)]
    ended = [process.wait() for process in writers]
    (root / "stop").touch()
    assert [process.wait() for process in squeezers] == [0, 0]
    assert ended == [0, 0]
    layout = Layout(root)
    compress_closed(layout)
    found = checked(layout)
    assert found.complete, found.problems
    assert [event.name for event, _ in history(layout)].count("job.enqueued") == 300
    assert len(archives(layout)) > 5


# durability = "interval"


def syncs(settings: str, root: Path, jobs: int) -> list[str]:
    """The names of the syncs of an open book while jobs are enqueued, and then a while."""
    root.mkdir()
    (root / "book.toml").write_text(settings)
    names: list[str] = []
    with Book.open(root) as book:
        book.enqueue("a", 0)

        def note(kind: str, name: str) -> None:
            names.extend([name] if kind == "sync" else [])

        with hooked(note):
            for number in range(jobs):
                book.enqueue("a", number)
            deadline = time.monotonic() + 5
            while "segment" not in names and time.monotonic() < deadline:
                time.sleep(0.01)
    return names


def test_interval_syncs_less_often_than_it_acknowledges_but_does_sync(tmp_path: Path) -> None:
    lazy = '[log]\ndurability = "interval"\nsync_interval_ms = 300\n'
    assert syncs("", tmp_path / "full", 20).count("segment") == 20
    assert 1 <= syncs(lazy, tmp_path / "lazy", 20).count("segment") < 15


def test_interval_syncs_before_a_roll_and_at_close(tmp_path: Path) -> None:
    root = tmp_path / "b"
    root.mkdir()
    (root / "book.toml").write_text(
        '[log]\ndurability = "interval"\nsync_interval_ms = 60000\nsegment_bytes = 2000\n'
    )
    steps: list[str] = []

    def note(kind: str, name: str) -> None:
        if kind == "sync":
            steps.append(name)

    with hooked(note):
        with Book.open(root) as book:
            while len(segments(book)) < 2:
                steps.clear()
                book.enqueue("a", "x" * 200)
            assert steps.index("segment") < steps.index("log folder")
            steps.clear()
            book.enqueue("a", 1)
            assert "segment" not in steps
        assert "segment" in steps
    assert checked(Layout(root)).complete


def test_with_interval_a_killed_process_loses_nothing(tmp_path: Path) -> None:
    root = tmp_path / "b"
    root.mkdir()
    (root / "book.toml").write_text('[log]\ndurability = "interval"\nsync_interval_ms = 60000\n')
    code = """
import os, sys
from tallybook import Book
book = Book.open(sys.argv[1])
for number in range(50):
    book.enqueue("a", number)
os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", code, root]).returncode == -9
    with Book.open(root) as book:
        assert book.counts() == {"a": {"pending": 50}}
    assert len(events(root)) == 51


def test_two_that_write_in_turn_see_each_segment_that_the_other_opens(tmp_path: Path) -> None:
    root = tmp_path / "b"
    root.mkdir()
    (root / "book.toml").write_text(SMALL)
    with Book.open(root) as one, Book.open(root) as other:
        for number in range(40):
            (one if number % 3 else other).enqueue("a", {"n": number})
    assert len(segments(root)) > 5
    assert checked(Layout(root)).complete
