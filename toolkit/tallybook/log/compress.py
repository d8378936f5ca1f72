"""Compressing closed segments, outside the lock of the log.

Whoever gets the segment's own lock (flock on its plain file) without waiting does it:

    write the archive aside, sync it, read it back → rename it in → manifest, synced with the
    folder of both → unlink the plain file

A crash at any step leaves the plain file, or an archive with its manifest, or both.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from tallybook import packed
from tallybook.event import Event
from tallybook.layout import FILE_MODE, SEGMENT_SUFFIX, Layout
from tallybook.log import manifest as manifests
from tallybook.log.durable import rename, sync
from tallybook.log.manifest import Ends, Manifest
from tallybook.log.reader import Segment, segments

log = logging.getLogger("tallybook.log")
_damaged: set[tuple[int, int, int, int]] = set()


def compress_closed(layout: Layout, limit: int | None = None) -> list[str]:
    """Compress closed segments of ``layout``, the oldest first, at most ``limit``; their names.

    One that another process compresses, that is damaged or that does not fit on the disk is passed
    over: it stays as it is. Takes no lock of the log, and may run in any thread or process.
    """
    done: list[str] = []
    for item, following in _closed(layout):
        if limit is not None and len(done) >= limit:
            break
        try:
            done += [item.name] if _compress(layout, item, following) else []
        except OSError as error:
            log.warning("%s was not compressed: %s", item.path, error)
    return done


def _closed(layout: Layout) -> Iterator[tuple[Segment, Event]]:
    """Segments of which a plain file lies there, with the event that opened the next one."""
    if sum(1 for path in layout.log.glob(f"*{SEGMENT_SUFFIX}")) < 2:
        return
    for item, following in pairwise(segments(layout)):
        plain = item.path.with_name(item.name)
        if item.opened and following.opened and plain.exists():
            yield item, following.opened


def _compress(layout: Layout, item: Segment, following: Event) -> bool:
    plain = layout.log / item.name
    with _locked(plain) as file:
        if file is None:
            return False
        _sweep(plain)
        archive = packed.packed(plain)
        if item.path != archive:
            ends = _proven_ends(item, following, file)
            if ends is None or not _archived(file, archive):
                return False
            manifests.write(layout, _manifest(item, ends, archive))
        elif not _is_proven(layout, item):
            return False
        plain.unlink()
    return True


@contextmanager
def _locked(plain: Path) -> Iterator[BinaryIO | None]:
    """The plain file with its lock; None where another holds it or has done the work."""
    try:
        file = plain.open("rb")
    except FileNotFoundError:
        yield None
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        yield file if plain.exists() else None


def _proven_ends(item: Segment, following: Event, file: BinaryIO) -> Ends | None:
    """The ends of a segment whose chain meets the next one; a damaged one is read but once."""
    status = os.fstat(file.fileno())
    seen = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    if seen in _damaged:
        return None
    ends = manifests.walk(item)
    if ends and ends.hash.hex() == following.get("previous_hash"):
        return ends
    _damaged.add(seen)
    log.warning("%s is damaged and stays as it is; see 'tallybook log verify'", item.path)
    return None


def _archived(file: BinaryIO, archive: Path) -> bool:
    """Write the archive of an open file; False where it does not read back the same."""
    aside = archive.with_name(f".{archive.stem}.{os.getpid()}{packed.SUFFIX}")
    try:
        fd = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_TRUNC, FILE_MODE)
        with os.fdopen(fd, "wb") as target:
            packed.pack(file, target)
            target.flush()
            sync(target.fileno(), "archive")
        file.seek(0)
        if not _reads_back(file, aside):
            log.warning("%s does not read back as it was written; look at the disk", aside)
            return False
        rename(aside, archive, "archive")
    finally:
        aside.unlink(missing_ok=True)
    return True


def _reads_back(file: BinaryIO, aside: Path) -> bool:
    try:
        with packed.reading(aside) as again:
            return _digest(again) == _digest(file)
    except packed.Unreadable:
        return False


def _digest(file: BinaryIO) -> bytes:
    found = hashlib.blake2b()
    for chunk in packed.chunks(file):
        found.update(chunk)
    return found.digest()


def _manifest(item: Segment, ends: Ends, archive: Path) -> Manifest:
    return Manifest(
        v=manifests.VERSION,
        segment=item.name,
        writer=item.writer,
        lines=ends.lines,
        first_seq=item.first_seq,
        last_seq=ends.last.seq,
        previous_hash=manifests.start_of_chain(item).hex(),
        hash=ends.hash.hex(),
        bytes=ends.size,
        opened_at=item.opened.occurred_at if item.opened else "",
        last_occurred_at=ends.last.occurred_at,
        archive_bytes=archive.stat().st_size,
        archive_digest=manifests.digest(archive),
    )


def _is_proven(layout: Layout, item: Segment) -> bool:
    """Whether the manifest of an archive, beside which the plain file still lies, proves it."""
    found = manifests.read(layout, item.name)
    return found is not None and found.archive_digest == manifests.digest(item.path)


def _sweep(plain: Path) -> None:
    """Take away what compressions that were killed have left aside; the lock is ours."""
    for path in plain.parent.glob(f".{plain.stem}.*"):
        path.unlink(missing_ok=True)
