"""A power cut at any moment loses nothing that was acknowledged, and the book opens.

A process is recorded by strace; at each moment the disk is rebuilt as a cut may leave it: with all
that was synced, and with any part of what was not. Taking out any one sync is seen.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from power_disk import Disk, Left
from power_recording import Step, record, record_one

import tallybook
from tallybook import Book, packed
from tallybook.event import Event
from tallybook.layout import Layout
from tallybook.log import manifest as manifests
from tallybook.log.reader import history, segments
from tallybook.testing import FakeClock, audit

SYNCS = (
    "anchor",
    "anchor folder",
    "archive",
    "checkpoint",
    "checkpoint mark",
    "checkpoint mark folder",
    "manifest",
    "manifest folder",
    "left folder",
    "left segment",
    "log folder",
    "new folder",
    "old wal",
    "segment",
    "state file",
    "writer file",
)
OF_A_REBUILD = ("certificate", "certificate folder", "rebuilt", "set aside")
"""Syncs of the papers of a rebuild and of the old state that it keeps: none of what was
acknowledged is there alone, and a rebuild that a power cut ends is run again."""
OF_A_REPAIR = ("plan", "plan folder", "undo", "undo folder")
"""Syncs of the papers of a repair: what a plan does is in the log like any other change, a plan is
made again from the same export, and tests/recover/test_plans_killed.py ends one at each of them."""
OF_A_COPY = ("cache file", "cache file folder")
"""Syncs of a file that state.db and the log make anew: torn it counts as absent, so none of them
is needed for a promise; they keep the file whole for others who read it."""
LATE = (
    dict.fromkeys(
        ("anchor", "anchor folder", "checkpoint", "checkpoint mark", "checkpoint mark folder"),
        b"pruning\n",
    )
    | dict.fromkeys(("archive", "manifest", "manifest folder"), b"compressing\n")
    | {"old wal": b"swapping\n", "state file": b"losing\n"}
)
"""Syncs that come late, and the acknowledgement before them."""
SEED = int(os.environ.get("TORTURE_SEED", "1"))

needs_strace = pytest.mark.skipif(
    shutil.which("strace") is None and "CI" not in os.environ,
    reason="strace (Debian package strace) is not installed",
)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Where disks are rebuilt: in memory where that can be, since each is opened but once."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder of its own in it
    with TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as made:
        yield Path(made) / "cut"


class LostByPower(AssertionError):
    """A cut left a book without something that was promised."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Step]]:
    """What the process did; taking a sync out of it later is the same as leaving it out then."""
    disk = tmp_path_factory.mktemp("power") / "disk"
    disk.mkdir()
    return disk, record(disk / "deep" / "book", disk.parent / "trace")


@needs_strace
def test_no_power_cut_loses_what_was_acknowledged(
    recorded: tuple[Path, list[Step]], place: Path
) -> None:
    disk, steps = recorded
    tried = 0
    for what, left, acks in cuts(disk, steps):
        check(place, disk, what, left, acks)
        tried += 1
    print(f"\n{tried} cuts in {len(steps)} steps, seed {SEED}")
    assert tried > 200


@needs_strace
def test_no_power_cut_loses_a_payload_that_state_db_alone_has(tmp_path: Path, place: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    steps = record_one(disk / "deep" / "book", tmp_path / "trace", "withhold")
    assert check_withheld(place, disk, steps) > 20
    unsynced = [step for step in steps if (step.kind, step.path[-4:]) != ("sync", "-wal")]
    with pytest.raises(LostByPower):
        check_withheld(place, disk, unsynced)


def check_withheld(place: Path, disk: Path, steps: list[Step]) -> int:
    """Every job has its payload after each cut that leaves state.db; how many there are."""
    tried = 0
    for what, left, acks in cuts(disk, steps, b"begun\n"):
        if "but state.db" not in what:
            check(place, disk, what, left, [*acks, *(["kept", *ack[1:]] for ack in acks)])
            tried += 1
    return tried


@needs_strace
@pytest.mark.parametrize("name", SYNCS)
def test_each_sync_is_needed(recorded: tuple[Path, list[Step]], place: Path, name: str) -> None:
    disk, steps = recorded
    without = [step for step in steps if step.name != name]
    assert len(without) < len(steps), "it never came to this sync"
    with pytest.raises(LostByPower) as lost:
        for what, left, acks in cuts(disk, without, LATE.get(name, b"")):
            check(place, disk, what, left, acks)
    print(f"\nwithout {name}: {lost.value}")


def test_every_sync_of_the_runtime_is_among_them() -> None:
    sources = Path(tallybook.__file__).parent.rglob("*.py")
    assert {name for path in sources for name in named(path)} == {
        *SYNCS,
        *OF_A_COPY,
        *OF_A_REBUILD,
        *OF_A_REPAIR,
    }


def named(path: Path) -> Iterator[str]:
    """The names of the syncs that a module asks for."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            name = getattr(node.args[-1], "value", None)
            if node.func.id in ("sync", "sync_folder", "replace_file") and isinstance(name, str):
                yield name
                if node.func.id == "replace_file":
                    yield f"{name} folder"


def cuts(
    root: Path, steps: list[Step], after: bytes = b""
) -> Iterator[tuple[str, Left, list[list[str]]]]:
    """Every state that differs, before each sync and after each acknowledgement; ``after`` is the
    acknowledgement that they begin with."""
    dice = random.Random(SEED)  # noqa: S311 - repeatable
    disk, acks, seen, begun = Disk(str(root)), [], set(), not after
    for number, step in enumerate([*steps, Step("ack", data=b"end")]):
        begun = begun or step.data == after
        if begun and step.kind in ("sync", "ack", "rename"):
            for what, left in with_losses(disk.cuts(dice)):
                mark = _mark(left, len(acks))
                if mark not in seen:
                    seen.add(mark)
                    yield f"cut before step {number} ({step.kind}), {what} kept", left, list(acks)
        if step.kind == "ack":
            acks.append(step.data.decode().split())
        disk.do(step)


def _mark(left: Left, acks: int) -> bytes:
    """Tells what a cut left from what another did."""
    digest = hashlib.sha256(str(acks).encode())
    for path, data in sorted(left.items()):
        digest.update(f"\0{path}\0{None if data is None else len(data)}\0".encode())
        digest.update(data or b"")
    return digest.digest()


def with_losses(found: Iterator[tuple[str, Left]]) -> Iterator[tuple[str, Left]]:
    """Some of the cuts take state.db along: it may be lost at any time."""
    for what, left in found:
        yield what, left
        if what in ("what was synced alone", "all", "some 0"):
            kept = {path: data for path, data in left.items() if "/state.db" not in path}
            yield f"{what}, but state.db", kept


def check(place: Path, disk: Path, what: str, left: Left, acks: list[list[str]]) -> None:
    """Open what a cut left; raise LostByPower where a promise does not hold."""
    shutil.rmtree(place, ignore_errors=True)
    for path, data in sorted(left.items()):
        lies = place / Path(path).relative_to(disk)
        if data is None:
            lies.mkdir(parents=True)
        else:
            lies.write_bytes(data)
    _same_inode(place / "deep" / "book" / "log" / "writer.json")
    try:
        problems = list(_problems(place / "deep" / "book", acks))
    except Exception as error:
        raise LostByPower(f"{what}: {type(error).__name__}: {error}") from error
    if problems:
        raise LostByPower(f"{what}: {problems}")


def _same_inode(path: Path) -> None:
    """A disk after a power cut still has the inode that the writer's file names."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        told = json.loads(path.read_bytes())
        status = path.stat()
        told |= {"device": status.st_dev, "inode": status.st_ino}
        path.write_text(json.dumps(told), "utf-8")


def _problems(root: Path, acks: list[list[str]]) -> Iterator[str]:
    clock = FakeClock()
    clock.reboot()
    with Book.open(root, clock=clock) as book:
        for kind, job_id, *_ in [ack for ack in acks if len(ack) > 1]:
            job = book.job(job_id)
            if job is None:
                yield f"{kind} {job_id} is lost"
            elif kind == "done" and (job.status != "done" or not book.entry(f"key-{job_id}")):
                yield f"{job_id} was done and is {job.status}"
            elif kind == "kept" and job.payload_is_lost:
                yield f"the payload of {job_id} is lost"
            elif kind == "leased" and job.lease_token == 0:
                yield f"the lease of {job_id} is lost"
        for job in book.jobs(status="done", limit=100):
            if not book.entry(f"key-{job.job_id}"):
                yield f"{job.job_id} is done without its cache write"
        book.enqueue("a", "after the cut")
    yield from audit(root)
    yield from _unproven(Layout(root))
    events = [event for event, _ in history(Layout(root))]
    if acks and len({event.writer for event in events}) > 1:
        yield f"a new writer began: {_told(events)}"


def _unproven(layout: Layout) -> Iterator[str]:
    for item in segments(layout):
        if packed.is_packed(item.path) and not manifests.read(layout, item.name):
            yield f"{item.path.name} stands alone and has no manifest"


def _told(events: list[Event]) -> list[str]:
    return [f"{e['reason']} {e['writer']}" for e in events if e.name == "log.repaired"]
