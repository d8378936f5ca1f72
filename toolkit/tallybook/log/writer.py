"""Appending to the log: who writes, batches of events, segments. Used under the lock alone."""

from __future__ import annotations

import logging
import os
import platform
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tallybook
from tallybook import event as events
from tallybook import packed
from tallybook.clock import Moment
from tallybook.errors import LogDamaged, NoRoom, TallybookError, is_no_room
from tallybook.event import Event
from tallybook.layout import FILE_MODE, Layout
from tallybook.log import identity
from tallybook.log.batch import Batch
from tallybook.log.chain import Position
from tallybook.log.durable import at, sync, sync_folder, write_all
from tallybook.log.folder import Seen
from tallybook.log.interval import IntervalSync
from tallybook.log.reader import Hole, history, segment
from tallybook.settings import LogSettings

log = logging.getLogger("tallybook.log")
VERSIONS = {
    "tallybook": tallybook.__version__,
    "python": platform.python_version(),
    "sqlite": sqlite3.sqlite_version,
}


@dataclass(frozen=True, slots=True)
class Node:
    """How this node is named in the log."""

    node_id: str
    host: str


class Log:
    """The end of the log of one book."""

    def __init__(self, layout: Layout, settings: LogSettings, node: Node) -> None:
        self._layout = layout
        self._folder = str(layout.log)
        self._settings = settings
        self._node = node
        self._repairs: list[Event] = []
        self._seen = Seen(layout.log)
        self._path = ("", layout.log)
        self._fd = -1
        self._open_name = ""
        self._is_packed = False
        self._is_known = False
        self._known_writer = ""
        self._opened_us: tuple[str, int] = ("", 0)
        lazy = settings.durability == "interval"
        self._interval = IntervalSync(settings.sync_interval_ms / 1000) if lazy else None

    def ends_at(self, position: Position) -> bool:
        """Whether it is certain that the log ends at ``position``, up to which it was read before.

        The quick answer for the segment that is open here; False means look with ``beyond``.
        """
        if position.segment != self._open_name or not self._seen.stands():
            return False
        status = os.fstat(self._fd)
        return status.st_size == position.offset and status.st_nlink > 0

    def beyond(self, position: Position) -> Iterator[tuple[Event, Position]]:
        """What the log has after ``position``: left by a crash between sync and commit.

        A torn tail is cut; it was never acknowledged.
        """
        changed_ns = self._seen.changed_ns()
        if self._size(position) == position.offset and self._seen.is_noted(changed_ns):
            self._seen.note(changed_ns)
            return
        self._known_writer = ""
        start = position
        for event, position in history(self._layout, position):  # noqa: B020 - the walk goes on
            yield event, position
        self._cut_torn_tail(position)
        self._seen.note(self._seen.changed_ns())
        self._size(position)
        if not self._is_known or position != start:
            self._sync_what_others_left(position)
            self._is_known = True

    def begin(self, position: Position, moment: Moment) -> tuple[Batch, list[tuple[Event, int]]]:
        """A batch for the lines after ``position``, and the events that open it, each with its
        ordinal.

        It opens a new segment where one is due: a first, a full one, a new boot, a new writer.
        Else repairs are told in the open segment, such as a torn tail that was cut.
        """
        writer = self._known_writer = self._known_writer or self._writer()
        if not self._roll_is_due(position, moment, writer):
            batch = Batch(self._path_of(position.segment), False, moment, position)
            return batch, [batch.add(event) for event in self._repairs]
        following = position.seq + 1 if writer == position.writer else 1
        path = self._layout.segment(writer, following)
        batch = Batch(path, True, moment, position, writer)
        opening = (self._opened(position, moment, writer), *self._repairs)
        return batch, [batch.add(event) for event in opening]

    def write(self, batch: Batch, before: Position) -> None:
        """Append the batch: one write, one sync. A failed write leaves nothing behind.

        With durability "interval" the sync comes later, but before a roll.
        """
        if batch.fresh and self._interval:
            self._sync_what_others_left(before)
        at("before_append")
        self._append(batch, 0 if batch.fresh else before.offset)
        at("after_append")
        if self._interval:
            self._interval.wrote(self._fd)
        else:
            sync(self._fd, "segment")
        if batch.fresh:
            sync_folder(self._layout.log, "log folder")
            self._is_packed = False
            self._seen.note(self._seen.changed_ns())
        at("after_sync")
        self._repairs.clear()

    def _append(self, batch: Batch, offset: int) -> None:
        try:
            self._open_for(batch)
            write_all(self._fd, batch.data, "segment")
        except OSError as error:
            self._undo(batch, offset)
            kind = NoRoom if is_no_room(error) else TallybookError
            raise kind(
                f"{batch.path}: cannot append: {error.strerror}; nothing was changed"
            ) from error

    def renew(self, lost: Hole) -> None:
        """Begin a new life: the log lost these lines at its end."""
        self._layout.writer.unlink(missing_ok=True)
        self._known_writer = ""
        self._tell("shortened", lost.writer, lost.first_seq, lost.last_seq)

    def close(self) -> None:
        """Let go of the open segment, with all that was written on disk."""
        if self._interval:
            self._interval.close()
        self._let_go()

    def _let_go(self) -> None:
        if self._interval:
            self._interval.sync()
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._open_name = -1, ""

    def _sync_what_others_left(self, position: Position) -> None:
        """What a killed process wrote last may wait for its sync, its new segment for a name; so
        may, with durability "interval", the last lines of a living one."""
        path = self._layout.log / position.segment
        if position.segment and path.exists():
            fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                sync(fd, "left segment")
            finally:
                os.close(fd)
            sync_folder(self._layout.log, "left folder")

    # who writes

    def _writer(self) -> str:
        """The writer of this folder; a new one where writer.json is not from here."""
        found = identity.read(self._layout)
        if found and identity.is_from_here(self._layout, found):
            return str(found["writer"])
        if found:
            self._tell("copied", str(found["writer"]), None, None)
        return identity.begin(self._layout)

    # segments

    def _path_of(self, segment: str) -> Path:
        """The path of the open segment, which is seldom another."""
        if self._path[0] != segment:
            self._path = (segment, self._layout.log / segment)
        return self._path[1]

    def _roll_is_due(self, position: Position, moment: Moment, writer: str) -> bool:
        return (
            not position.segment
            or writer != position.writer
            or moment.boot_id != position.boot_id
            or position.offset >= self._settings.segment_bytes
            or moment.boot_us - self._opened_at(position)
            >= self._settings.segment_age_s * 1_000_000
            or self._is_packed
        )

    def _opened_at(self, position: Position) -> int:
        """Boot time at which the open segment was opened, in µs; boots do not mix in one."""
        if self._opened_us[0] != position.segment:
            opened = segment(self._layout.log / position.segment).opened
            self._opened_us = (position.segment, opened.boot_us if opened else 0)
        return self._opened_us[1]

    def _opened(self, position: Position, moment: Moment, writer: str) -> Event:
        previous: dict[str, Any] = {"previous_hash": position.hash.hex()}
        if position.writer and writer != position.writer:
            previous |= {"previous_writer": position.writer, "previous_seq": position.seq}
        return events.opened(
            moment,
            writer=writer,
            node_id=self._node.node_id,
            host=self._node.host,
            pid=os.getpid(),
            versions=VERSIONS,
            previous=previous,
        )

    def _open_for(self, batch: Batch) -> None:
        if self._open_name == batch.name and not batch.fresh:
            return
        self._let_go()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        if batch.fresh:
            flags |= os.O_CREAT | os.O_EXCL
        self._fd = os.open(batch.path, flags, FILE_MODE)
        self._open_name = batch.name
        if batch.fresh:
            at("segment_created")

    def _undo(self, batch: Batch, offset: int) -> None:
        if self._fd >= 0 and self._open_name == batch.name:
            os.ftruncate(self._fd, offset)
        if batch.fresh:
            self._let_go()
            batch.path.unlink(missing_ok=True)

    def _cut_torn_tail(self, position: Position) -> None:
        """Cut what stands behind the last whole line of the last segment."""
        for path in self._layout.segments():
            if packed.is_packed(path):
                continue
            name, size = path.name, _size(path)
            if name == position.segment and size > position.offset:
                os.truncate(path, position.offset)
                torn = size - position.offset
                log.warning("%s: cut a torn tail of %d bytes, never acknowledged", path, torn)
                self._tell("torn_tail", position.writer, None, None, torn)
            elif name != position.segment and not _has_whole_line(path):
                path.unlink()
                self._tell("torn_tail", name[:8], None, None, size)

    def _size(self, position: Position) -> int:
        """Size of the open segment; where it was closed and compressed since, all is known."""
        path = f"{self._folder}/{position.segment}"
        self._is_packed = False
        try:
            return os.stat(path).st_size if position.segment else 0  # noqa: PTH116 - a hot path
        except FileNotFoundError:
            self._is_packed = True
            if not packed.packed(Path(path)).exists():
                raise LogDamaged(
                    f"{path} is gone under a running process; "
                    "'tallybook log verify' says what is left"
                ) from None
            return position.offset

    def _tell(
        self, reason: str, writer: str, first: int | None, last: int | None, size: int | None = None
    ) -> None:
        fields = {"reason": reason, "writer": writer, "bytes": size}
        lost = {"first_lost_seq": first, "last_lost_seq": last}
        self._repairs.append(Event("log.repaired", fields | lost))


def _size(path: Path) -> int:
    """The size of a listed segment; 0 for one that was compressed since."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _has_whole_line(path: Path) -> bool:
    """Whether a listed segment has one; only a whole one is compressed and gone since."""
    try:
        with path.open("rb") as file:
            first = file.readline()
            return first.endswith(b"\n") and b"\0" not in first
    except FileNotFoundError:
        return True
