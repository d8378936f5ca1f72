"""A batch: events on their way into one segment, each stamped and chained as it is added."""

from __future__ import annotations

from pathlib import Path

from tallybook.clock import Moment
from tallybook.event import Event, encode
from tallybook.log.chain import NO_HASH, Position, link


class Batch:
    """The lines that follow ``before`` in the segment at ``path``, which ``fresh`` says is new;
    those of another ``writer`` than before begin a new life of the log.

    Running totals instead of a position a line: a queue writes many.
    """

    def __init__(
        self, path: Path, fresh: bool, moment: Moment, before: Position, writer: str = ""
    ) -> None:
        self.path = path
        self.fresh = fresh
        self.data = bytearray()
        self.writer = writer or before.writer
        self.name = path.name if fresh else before.segment
        self._moment = (moment.wall(), moment.boot_us, moment.boot_id)
        goes_on = self.writer == before.writer
        self._seq, self._hash = (before.seq, before.hash) if goes_on else (0, NO_HASH)
        self._ordinal = before.ordinal
        self._offset = 0 if fresh else before.offset

    @property
    def end(self) -> Position:
        """The place behind the last line."""
        return Position(
            self.writer,
            self._seq,
            self._hash,
            self.name,
            self._offset + len(self.data),
            self._ordinal,
            self._moment[2],
        )

    def add(self, event: Event) -> tuple[Event, int]:
        """Stamp ``event`` as the next; returns it with its ordinal in the history."""
        self._seq += 1
        self._ordinal += 1
        stamped = event.stamped(self._seq, self.writer, *self._moment)
        line = encode(stamped)
        self._hash = link(self._hash, line)
        self.data += line
        self.data += b"\n"
        return stamped, self._ordinal
