"""A batch: events on their way into one segment, each stamped and chained as it is added."""

from __future__ import annotations

from pathlib import Path

from tallybook.clock import Moment
from tallybook.event import Event, encode
from tallybook.log.chain import NO_HASH, Position, link


class Batch:
    """The lines that follow ``before`` in the segment at ``path``, which ``fresh`` says is new.

    Running totals instead of a position a line: a queue writes many.
    """

    def __init__(self, path: Path, fresh: bool, moment: Moment, before: Position) -> None:
        self.path = path
        self.fresh = fresh
        self.data = bytearray()
        self.writer = before.writer
        self._name = path.name
        self._occurred_at = moment.wall()
        self._boot_us, self._boot_id = moment.boot_us, moment.boot_id
        self._seq, self._hash, self._ordinal = before.seq, before.hash, before.ordinal
        self._offset = before.offset if before.segment == self._name else 0

    @property
    def end(self) -> Position:
        """The place behind the last line."""
        return Position(
            writer=self.writer,
            seq=self._seq,
            hash=self._hash,
            segment=self._name,
            offset=self._offset + len(self.data),
            ordinal=self._ordinal,
            boot_id=self._boot_id,
        )

    def add(self, event: Event, writer: str) -> tuple[Event, int]:
        """Stamp ``event`` as the next of ``writer``; returns it with its ordinal in the history."""
        if writer != self.writer:
            self.writer, self._seq, self._hash = writer, 0, NO_HASH
        self._seq += 1
        self._ordinal += 1
        stamped = event.stamped(self._seq, writer, self._occurred_at, self._boot_us, self._boot_id)
        line = encode(stamped)
        self._hash = link(self._hash, line)
        self.data += line
        self.data += b"\n"
        return stamped, self._ordinal
