"""Checkpoints, folds that begin with them, and a log whose start was pruned."""

from __future__ import annotations

import itertools
import json
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from core_steps import events, segments
from test_fold import live, live_a_little

from tallybook import Book
from tallybook.book import checkpoints, opening
from tallybook.book.opening import marks
from tallybook.book.pruning import prune
from tallybook.cli.main import main
from tallybook.errors import LogDamaged
from tallybook.layout import Layout
from tallybook.log import anchor as anchors
from tallybook.log import reader
from tallybook.log.compress import compress_closed
from tallybook.log.verify import verify
from tallybook.recover import rebuild
from tallybook.testing import FakeClock

SMALL = "[log]\nsegment_bytes = 3000\n"


def lived(root: Path, seed: int = 1, steps: int = 80, clock: FakeClock | None = None) -> Layout:
    """A closed book with a random history in some segments."""
    root.mkdir(exist_ok=True)
    (root / "book.toml").write_text(SMALL)
    clock = clock or FakeClock()
    with Book.open(root, clock=clock) as book:
        live_a_little(book, clock, random.Random(seed), steps)  # noqa: S311
    return Layout(root)


def state(root: Path) -> Any:
    """What the book says of its jobs and entries, from whatever it has."""
    with Book.read(root) as book:
        jobs = {job.job_id: job for job in book.jobs(limit=10**6)}
        return jobs, {entry.key: entry for entry in book.entries(10**6)}, book.position()


def timeless(root: Path) -> Any:
    """The same without what belongs to one boot: a rebuild runs by the clock of this machine."""
    jobs, entries, _ = state(root)
    return {
        job.job_id: job._replace(due_boot_us=0, lease_boot_us=None, expire_boot_us=0)
        for job in jobs.values()
    }, entries


def lose_state(layout: Layout) -> None:
    """Lose state.db and all beside it."""
    for path in layout.root.glob("state.db*"):
        path.unlink()


def is_whole(layout: Layout) -> bool:
    """Whether the log is whole by every mark."""
    return verify(layout, marks(layout)).complete


def checkpoint(layout: Layout) -> Path:
    """A checkpoint of the book as it stands."""
    with Book.open(layout.root, clock=FakeClock()) as book:
        return checkpoints.make(layout, book.moment().wall()).path


@pytest.mark.parametrize("seed", range(4))
def test_a_fold_from_a_checkpoint_gives_what_the_whole_log_gives(tmp_path: Path, seed: int) -> None:
    clock = FakeClock()
    layout = lived(tmp_path / "b", seed, clock=clock)
    checkpoint(layout)
    lived(tmp_path / "b", seed + 100, clock=clock)
    before = state(layout.root)
    shutil.copytree(layout.root, tmp_path / "whole")
    shutil.rmtree(tmp_path / "whole" / "checkpoints")
    for root in (layout.root, tmp_path / "whole"):
        lose_state(Layout(root))
        assert state(root) == before
        Book.open(root, clock=clock).close()
        assert state(root)[:2] == before[:2]


def test_a_checkpoint_of_a_book_with_no_event_yet_tells_of_no_loss(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "b")
    Book.open(layout.root).close()
    checkpoint(layout)
    with Book.open(layout.root) as book:
        book.enqueue("a", 1)
    assert "log.repaired" not in {event["event"] for event in events(layout.root)}
    assert is_whole(layout)


def test_a_fold_reads_only_what_comes_after_the_checkpoint(tmp_path: Path) -> None:
    layout = lived(tmp_path / "b")
    checkpoint(layout)
    before = state(layout.root)
    lose_state(layout)
    for path in segments(layout.root)[:-1]:
        path.write_bytes(path.read_bytes().replace(b'"seq"', b'"sex"'))
    with Book.open(layout.root, clock=FakeClock()):
        assert state(layout.root)[:2] == before[:2]


def test_a_checkpoint_is_a_database_with_its_position_and_a_digest_beside_it(
    tmp_path: Path,
) -> None:
    layout = lived(tmp_path / "b")
    path = checkpoint(layout)
    _, _, position = state(layout.root)
    assert path.name == f"{position.writer[:8]}-{position.seq:012d}.db"
    mark = json.loads(path.with_suffix(".json").read_bytes())
    assert (mark["seq"], mark["hash"]) == (position.seq, position.hash.hex())
    assert [p.name for p in sorted(layout.checkpoints.iterdir())] == [
        path.name,
        path.with_suffix(".json").name,
    ]
    assert {p.stat().st_mode & 0o777 for p in layout.checkpoints.iterdir()} == {0o600}


def cut(path: Path) -> None:
    """Lose the second half of a file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    """Change one byte in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize("spoil", [cut, flip, Path.unlink, lambda p: p.write_text("no database")])
def test_a_corrupt_checkpoint_is_passed_over_for_the_next_older(tmp_path: Path, spoil: Any) -> None:
    clock = FakeClock()
    layout = lived(tmp_path / "b", clock=clock)
    older = checkpoint(layout)
    lived(tmp_path / "b", 2, clock=clock)
    newer = checkpoint(layout)
    before = state(layout.root)
    spoil(newer)
    assert [found.path for found in checkpoints.good(layout)] == [older]
    lose_state(layout)
    Book.open(layout.root, clock=clock).close()
    assert state(layout.root)[:2] == before[:2]


def test_where_no_checkpoint_is_good_the_whole_log_is_folded(tmp_path: Path) -> None:
    layout = lived(tmp_path / "b")
    cut(checkpoint(layout))
    before = state(layout.root)
    lose_state(layout)
    assert state(layout.root)[:2] == before[:2]


def test_three_checkpoints_are_kept_and_one_is_made_when_enough_events_came(
    tmp_path: Path,
) -> None:
    with Book.open(tmp_path / "b", clock=FakeClock()) as book:
        made = []
        for number in range(60):
            book.enqueue("a", number)
            made.append(checkpoints.make_if_due(book.layout, book.moment().wall(), 10))
        assert [number for number, one in enumerate(made) if one] == [8, 18, 28, 38, 48, 58]
        assert len(checkpoints.kept(book.layout)) == 3
        assert len(list(book.layout.checkpoints.iterdir())) == 6


def test_a_checkpoint_made_while_others_write_is_of_one_instant(tmp_path: Path) -> None:
    root = tmp_path / "b"
    code = """
import sys
from tallybook import Book
with Book.open(sys.argv[1]) as book:
    print("on", flush=True)
    while not (book.layout.root / "stop").exists():
        book.enqueue("a", "x" * 500)
"""
    process = subprocess.Popen([sys.executable, "-c", code, root], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    layout = Layout(root)
    for number in range(10):
        made = checkpoints.make(layout, f"2026-03-01T12:00:{number:02d}.000000Z")
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        (tmp_path / "copy" / "log").mkdir(parents=True)
        shutil.copy(made.path, tmp_path / "copy" / "state.db")
        store = opening.open_read_only(tmp_path / "copy" / "state.db")
        assert store is not None
        enqueued = sum(store.queue.counts().get("a", {}).values())
        assert enqueued == max(made.position.ordinal - 1, 0)
        store.connection.close()
    (root / "stop").touch()
    assert process.wait() == 0


def test_a_rebuild_of_a_log_with_a_hole_before_a_checkpoint_loses_nothing(tmp_path: Path) -> None:
    layout = lived(tmp_path / "b")
    checkpoint(layout)
    before = timeless(layout.root)
    lines = segments(layout.root)[0].read_bytes().splitlines(keepends=True)
    segments(layout.root)[0].write_bytes(b"".join(lines[:3] + lines[4:]))
    lose_state(layout)
    rebuilt = rebuild(layout.root)
    assert not rebuilt.complete
    assert (rebuilt.unknown_keys, rebuilt.passed_over, bool(rebuilt.checkpoint)) == (0, 0, True)
    assert identical_but_for_rescues(timeless(layout.root), before)


def identical_but_for_rescues(after: Any, before: Any) -> bool:
    """Whether all came back; what was leased is taken from its holder, who is gone."""
    same = {name for name, job in before[0].items() if job.status != "leased"}
    assert {name: after[0][name] for name in same} == {name: before[0][name] for name in same}
    for name in before[0].keys() - same:
        old, new = before[0][name], after[0][name]
        kept = ("payload_json", "idempotency_key", "attempt_count", "priority", "lease_token")
        assert [getattr(new, k) for k in kept] == [getattr(old, k) for k in kept]
        assert new.status != "leased"
    return after[0].keys() == before[0].keys() and after[1] == before[1]


# pruning


def pruned(tmp_path: Path, seed: int = 1) -> tuple[Layout, Any]:
    """A compressed and pruned book, and its state before."""
    layout = lived(tmp_path / "b", seed, steps=150)
    compress_closed(layout)
    assert len(segments(layout.root)) > 3
    before = state(layout.root)
    with Book.open(layout.root, clock=FakeClock()) as book:
        told = prune(book)
    assert len(told.segments) > 2
    return layout, before


def test_a_pruned_log_is_whole_keeps_its_chain_and_folds_from_the_checkpoint(
    tmp_path: Path,
) -> None:
    layout, before = pruned(tmp_path)
    assert len(segments(layout.root)) == 1
    assert is_whole(layout)
    once = timeless(layout.root)
    lose_state(layout)
    assert state(layout.root)[:2] == before[:2]
    rebuilt = rebuild(layout.root)
    assert rebuilt.complete
    assert rebuilt.checkpoint
    assert timeless(layout.root) == once
    lived(layout.root, 9)
    assert is_whole(layout)


def test_an_edit_behind_the_anchor_breaks_the_chain(tmp_path: Path) -> None:
    layout, _ = pruned(tmp_path)
    raw = json.loads(layout.anchor.read_bytes())
    ends = {w: end | {"hash": "ab" * 32} for w, end in raw["ends"].items()}
    layout.anchor.write_text(json.dumps(raw | {"ends": ends}))
    assert not is_whole(layout)


def test_a_dry_run_says_what_would_go_and_changes_no_segment(tmp_path: Path) -> None:
    layout = lived(tmp_path / "b", steps=150)
    before = sorted(layout.log.iterdir())
    with Book.open(layout.root, clock=FakeClock()) as book:
        said = prune(book, dry_run=True)
        assert sorted(layout.log.iterdir()) == before
        assert not layout.checkpoints.exists()
        done = prune(book)
    assert said.segments == done.segments
    assert (said.events, said.bytes, said.last_seq) == (done.events, done.bytes, done.last_seq)


def test_segments_of_the_days_to_keep_stay(tmp_path: Path) -> None:
    clock, root = FakeClock(), tmp_path / "b"
    with Book.open(root, clock=clock) as book:
        for number in range(5):
            book.enqueue("a", number)
            clock.advance(86400)
        assert len(segments(book)) == 5
        told = prune(book, "2026-03-03T12:00:00.000000Z")
        assert [cut.last_occurred_at[:10] for cut in told.segments] == ["2026-03-01", "2026-03-02"]
        assert len(segments(book)) == 3
        assert is_whole(book.layout)
        again = prune(book, "2026-03-04T12:00:00.000000Z")
        assert len(again.segments) == 1
    assert is_whole(Layout(root))
    assert state(root)[2].ordinal == 10


def test_a_prune_that_was_killed_leaves_files_that_nobody_reads_and_the_next_removes(
    tmp_path: Path,
) -> None:
    layout = lived(tmp_path / "b", steps=150)
    shutil.copytree(layout.log, tmp_path / "old")
    with Book.open(layout.root, clock=FakeClock()) as book:
        prune(book)
        gone = [
            p for p in (tmp_path / "old").glob("*.ndjson") if not (layout.log / p.name).exists()
        ]
        assert len(gone) > 2
        for path in gone[1:]:
            shutil.copy(path, layout.log)
        assert is_whole(layout)
        assert len(segments(book)) == 1
        prune(book)
        assert len(list(layout.log.glob("*.ndjson"))) == 1


def test_without_a_good_checkpoint_a_pruned_log_is_never_folded_from_nothing(
    tmp_path: Path,
) -> None:
    layout, _ = pruned(tmp_path)
    lose_state(layout)
    for path in layout.checkpoints.glob("*.db"):
        cut(path)
    for fold in (Book.open, Book.read, rebuild):
        with pytest.raises(LogDamaged, match="no checkpoint is good"):
            fold(layout.root)


def test_a_prune_never_goes_past_its_checkpoint(tmp_path: Path) -> None:
    layout = lived(tmp_path / "b", steps=150)
    with Book.open(layout.root, clock=FakeClock()) as book:
        prune(book)
    anchor = anchors.read(layout)
    assert anchor is not None
    (newest, *_) = checkpoints.kept(layout)
    assert anchor.position.ordinal <= newest.position.ordinal
    assert newest.position.segment == segments(layout.root)[0].name


def test_an_old_state_put_back_over_a_pruned_log_is_folded_anew(tmp_path: Path) -> None:
    clock = FakeClock()
    layout = lived(tmp_path / "b", clock=clock)
    shutil.copy(layout.state, tmp_path / "old.db")
    lived(tmp_path / "b", 5, steps=150, clock=clock)
    before = state(layout.root)
    with Book.open(layout.root, clock=clock) as book:
        prune(book)
    lose_state(layout)
    shutil.copy(tmp_path / "old.db", layout.state)
    assert state(layout.root)[:2] == before[:2]
    with Book.open(layout.root, clock=clock) as book:
        assert book.enqueue("a", 1).is_new
    assert is_whole(layout)
    assert len({opened["writer"] for opened in events(layout.root) if "writer" in opened}) == 1


def test_a_two_times_copied_log_is_pruned_over_its_writers(tmp_path: Path) -> None:
    root = tmp_path / "b0"
    lived(root)
    for number in (1, 2):
        shutil.copytree(root, tmp_path / f"b{number}")
        root = tmp_path / f"b{number}"
        lived(root, number)
    before = state(root)
    with Book.open(root, clock=FakeClock()) as book:
        prune(book)
    layout = Layout(root)
    assert len({s.writer for s in reader.segments(layout)}) == 1
    assert is_whole(layout)
    lose_state(layout)
    assert state(root)[:2] == before[:2]


# commands


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """The JSON that a command answers with; it must end clean."""
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_commands_checkpoint_and_prune_say_what_they_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layout = lived(tmp_path / "b", steps=150)
    at = ["--book", str(layout.root)]
    made = answer(capsys, "checkpoint", *at)
    assert (layout.checkpoints / made["checkpoint"]).stat().st_size == made["bytes"]
    said = answer(capsys, "log", "prune", "--dry-run", *at)
    assert (said["dry_run"], said["checkpoint"]) == (True, None)
    kept = answer(capsys, "log", "prune", "--before", "2020-01-01", *at)
    assert kept["segments"] == []
    assert main(["log", "prune", *at]) == 2
    done = answer(capsys, "log", "prune", "--keep-days", "0", *at)
    assert len(done["segments"]) == len(said["segments"]) > 2
    assert main(["log", "prune", "--keep-days", "0", *at]) == 0
    assert "0 segments" in capsys.readouterr().out
    assert main(["trace", "unheard-of", *at]) == 2
    assert "the log was pruned" in capsys.readouterr().err
    for wrong in (
        ["--keep-days", "-1"],
        ["--before", "soon"],
        ["--keep-days", "1", "--before", "2026-01-01"],
    ):
        assert main(["log", "prune", *wrong, *at]) == 2
    assert main(["log", "prune", "--book", str(tmp_path / "none")]) == 2
    assert main(["checkpoint", "--book", str(tmp_path / "none")]) == 2


# state.db lost under running workers

HANDLERS = """
import time
from tallybook import handler

@handler("a")
def work(job):
    time.sleep(0.005)
    return job.payload
"""
FILES = ("state.db", "state.db-wal", "state.db-shm")
SUBSETS = [s for n in (1, 2, 3) for s in itertools.combinations(FILES, n)]


@pytest.mark.parametrize(
    "lost", SUBSETS, ids=["+".join(s).replace("state.db", "db") for s in SUBSETS]
)
def test_whatever_of_the_state_is_deleted_under_running_workers_the_work_goes_on(
    tmp_path: Path, lost: tuple[str, ...]
) -> None:
    (tmp_path / "work.py").write_text(HANDLERS)
    root = tmp_path / "b"
    with Book.open(root) as book:
        ids = {book.enqueue("a", n).job_id for n in range(200)}
        command = [
            sys.executable,
            "-m",
            "tallybook",
            "worker",
            "work",
            "--drain",
            "--book",
            str(root),
        ]
        workers = [subprocess.Popen(command, cwd=tmp_path) for _ in range(2)]
        deadline = time.monotonic() + 60
        for goal in (20, 60):
            while done(root) < goal and time.monotonic() < deadline:
                time.sleep(0.01)
            for name in lost:
                (root / name).unlink(missing_ok=True)
        assert [worker.wait(timeout=60) for worker in workers] == [0, 0]
        more = book.enqueue("a", "after").job_id
        assert book.counts() == {"a": {"done": 200, "pending": 1}}
    assert {event["job_id"] for event in events(root) if event["event"] == "job.done"} == ids
    assert [event["event"] for event in events(root)].count("job.done") == 200
    assert is_whole(Layout(root))
    with Book.open(root) as again:
        assert live(again)[0].keys() == ids | {more}


def done(root: Path) -> int:
    """How many jobs are done, by the log alone."""
    return sum(path.read_bytes().count(b'"event":"job.done"') for path in segments(root))


def test_a_worker_compresses_closed_segments_and_makes_checkpoints_on_its_way(
    tmp_path: Path,
) -> None:
    (tmp_path / "work.py").write_text(HANDLERS)
    root = tmp_path / "b"
    root.mkdir()
    (root / "book.toml").write_text("[log]\nsegment_bytes = 3000\ncheckpoint_events = 100\n")
    with Book.open(root) as book:
        for number in range(300):
            book.enqueue("a", number)
    command = [sys.executable, "-m", "tallybook", "worker", "work", "--book", root]
    worker = subprocess.Popen(command, cwd=tmp_path)
    layout = Layout(root)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if checkpoints.kept(layout) and list(layout.log.glob("*.zst")):
            break
        time.sleep(0.05)
    worker.terminate()
    assert worker.wait(timeout=60) == 0
    assert checkpoints.kept(layout)
    assert list(layout.log.glob("*.zst"))
    assert is_whole(layout)
