"""Where a book may lie, and what happens where its disk is read-only, full, or kept by a reader."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

import pytest
from core_steps import names
from live_steps import Place, until

from tallybook import Book
from tallybook.book import wal
from tallybook.errors import BadInput, NoRoom
from tallybook.layout import Layout
from tallybook.log import filesystem
from tallybook.log.filesystem import is_refused, kind_of, require_fit
from tallybook.log.verify import verify

MOUNTED = r"""
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 27 0:40 / /home rw - nfs4 server:/home rw,vers=4.2
41 40 0:41 / /home/me/with\040space rw master:2 - fuse.sshfs me@host: rw
42 27 0:42 / /srv rw - ext4 /dev/vdb rw
43 27 0:43 / /srv rw - 9p share rw
a line that is none
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/var/book", "ext4"),
        ("/home/me/book", "nfs4"),
        ("/homestead", "ext4"),
        ("/home/me/with space/book", "fuse.sshfs"),
        ("/srv/book", "9p"),
    ],
)
def test_the_longest_mount_above_a_path_says_its_kind_and_the_last_covers_others(
    path: str, kind: str
) -> None:
    assert kind_of(MOUNTED, Path(path)) == kind


def test_where_nothing_is_known_of_mounts_nothing_is_refused(tmp_path: Path) -> None:
    assert kind_of("", tmp_path) is None


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "fuse", "fuse.sshfs",
             "fuse.s3fs", "ceph", "glusterfs", "afs", "lustre"]
)  # fmt: skip
def test_network_and_virtual_file_systems_are_refused(kind: str) -> None:
    assert is_refused(kind)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "fuseblk"])
def test_local_file_systems_are_not(kind: str) -> None:
    assert not is_refused(kind)


def on_9p(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From now on ``tmp_path`` is said to be mounted by 9p."""
    table = tmp_path / "mountinfo"
    table.write_text(f"27 1 254:0 / {tmp_path.resolve()} rw - 9p share rw\n")
    monkeypatch.setattr(filesystem, "_MOUNTINFO", table)


def test_a_book_is_refused_there_with_a_way_out_and_can_still_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Book.open(tmp_path / "book") as book:
        book.enqueue("a", 1)
    on_9p(monkeypatch, tmp_path)
    for path in (tmp_path / "book", tmp_path / "new"):
        with pytest.raises(BadInput, match=r"lies on 9p.*local disk.*allow_file_system = \"9p\""):
            Book.open(path)
    assert not (tmp_path / "new").exists()
    with Book.read(tmp_path / "book") as book:
        assert book.counts() == {"a": {"pending": 1}}


def test_one_kind_can_be_accepted_knowingly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_9p(monkeypatch, tmp_path)
    (tmp_path / "book").mkdir()
    settings = tmp_path / "book" / "book.toml"
    settings.write_text('[node]\nallow_file_system = "nfs"\n')
    with pytest.raises(BadInput, match="lies on 9p"):
        Book.open(tmp_path / "book")
    settings.write_text('[node]\nallow_file_system = "9p"\n')
    with Book.open(tmp_path / "book") as book:
        assert book.enqueue("a", 1).is_new


@contextmanager
def mounted(point: Path, *options: str) -> Iterator[Path]:
    """A small tmpfs at ``point``; the test is left out where nothing may be mounted."""
    point.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", ",".join(("size=1m", *options)), "tmpfs", str(point)]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting needs root; a limit of file sizes stands for the full disk elsewhere")
    try:
        yield point
    finally:
        subprocess.run(["umount", "-l", str(point)], check=True)


def test_a_read_only_disk_refuses_changes_with_one_line_and_lets_read(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk") as disk:
        with Book.open(disk / "book") as book:
            book.enqueue("a", 1)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with pytest.raises(BadInput, match="mounted read-only; commands that only read"):
            Book.open(disk / "book")
        with Book.read(disk / "book") as book:
            assert book.counts() == {"a": {"pending": 1}}
        assert verify(Layout(disk / "book")).complete


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_of_another_user_is_refused_with_its_name(tmp_path: Path) -> None:
    Book.open(tmp_path / "book").close()
    (tmp_path / "book" / "log").chmod(0o500)
    with pytest.raises(BadInput, match="log is not writable for this user"):
        require_fit(tmp_path / "book")


def test_a_full_disk_loses_nothing_that_was_acknowledged_and_all_goes_on_with_room(
    tmp_path: Path,
) -> None:
    acknowledged: list[str] = []
    with mounted(tmp_path / "disk") as disk:
        (disk / "ballast").write_bytes(b"x" * 150_000)
        with Book.open(disk / "book") as book:
            with pytest.raises(NoRoom, match="nothing was changed"):
                for number in range(10_000):
                    payload = {"n": number, "words": "x" * 5000}
                    acknowledged.append(book.enqueue("a", payload).job_id)
            (disk / "ballast").unlink()
            acknowledged.append(book.enqueue("a", "room").job_id)
        with Book.open(disk / "book") as book:
            assert {job.job_id for job in book.jobs(limit=10**6)} == set(acknowledged)
        assert len(acknowledged) > 5
        assert verify(Layout(disk / "book")).complete


def fill(ballast: FileIO) -> None:
    """Take all room of a disk; what others let go of since is taken at the next call."""
    with suppress(OSError):
        while True:
            ballast.write(b"x" * 4096)


def heard(worker: subprocess.Popen[str]) -> list[str]:
    """The lines that a worker writes to standard error, as they come."""
    lines: list[str] = []

    def listen() -> None:
        for line in worker.stderr or ():
            lines.append(line)

    threading.Thread(target=listen, daemon=True).start()
    return lines


def test_a_worker_on_a_full_disk_waits_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk") as disk:
        place = Place(disk)
        try:
            worker = place.beating()
            said = heard(worker)
            job_id = place.put("slow.and.large", 1.5)
            until(lambda: (place.root / "running-1").exists())
            with (disk / "ballast").open("wb", buffering=0) as ballast:
                until(lambda: fill(ballast) or any("trying again" in line for line in said))
            (disk / "ballast").unlink()
            until(lambda: place.named("job.done"))
            assert worker.poll() is None
            assert [e["job_id"] for e in place.named("job.done")] == [job_id]
            assert names(place.book).count("job.leased") == 1
        finally:
            place.end()


READ_FOR_EVER = """
import sqlite3, sys, time
connection = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True, isolation_level=None)
connection.execute("begin")
connection.execute("select count(*) from jobs").fetchone()
print("reading", flush=True)
time.sleep(600)
"""


@contextmanager
def reading(book: Book) -> Iterator[int]:
    """The pid of a process that never ends its read transaction."""
    command = [sys.executable, "-c", READ_FOR_EVER, str(book.layout.state)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        try:
            assert reader.stdout and reader.stdout.readline() == "reading\n"
            yield reader.pid
        finally:
            reader.kill()


def test_a_forgotten_reader_is_named_once_the_wal_has_grown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wal, "LARGE_BYTES", 6 * 2**20)
    with Book.open(tmp_path / "book") as book:
        book.enqueue("a", 0)
        with reading(book) as pid:
            assert wal.readers(book.layout) == [pid]
            assert wal.warning(book.layout) is None
            for _ in range(10):
                book.enqueue("a", "x" * 900_000)
            said = wal.warning(book.layout)
            assert said and f"process {pid} reads state.db" in said
        assert wal.readers(book.layout) == []


def test_a_wal_begins_anew_once_its_reader_is_gone(tmp_path: Path) -> None:
    with Book.open(tmp_path / "book") as book:
        reader = sqlite3.connect(book.layout.state, isolation_level=None)
        reader.execute("begin")
        reader.execute("select count(*) from jobs").fetchone()
        for _ in range(12):
            book.enqueue("a", "x" * 900_000)
        grown = wal.wal_bytes(book.layout)
        reader.close()
        for _ in range(12):
            book.enqueue("b", "x" * 900_000)
        assert wal.wal_bytes(book.layout) < grown * 1.5
