"""What one segment still holds: its lines, what of them cannot be read, and which are sealed.

A line is *sealed* where a hash that was kept elsewhere goes over it and holds: that of a manifest,
of the ``log.opened`` that follows, of state.db, latest.json or a checkpoint. Where such a hash does
not hold and nothing is missing before it, a line was edited: which one is not known, so all up to
the last hash that held are in doubt.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tallybook import packed
from tallybook.event import BadLine, Event, decode
from tallybook.log.reader import lines


@dataclass(slots=True)
class Run:
    """Lines that follow each other without a hole, and when the first and the last happened."""

    first_seq: int
    last_seq: int
    first_at: str
    last_at: str


@dataclass(frozen=True, slots=True)
class BadPlace:
    """A line that is no event: where it stands and why. ``byte_offset`` is one in the text."""

    segment: str
    line: int
    byte_offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class Told:
    """Lines that ``log.repaired`` at ``seq`` says are lost, or were edited.

    With ``is_covered`` the state of then had them all the same, from a checkpoint.
    """

    seq: int
    writer: str
    first_seq: int
    last_seq: int
    is_edit: bool
    is_covered: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """A segment as it was found. ``hash`` is the chain behind its last line; ``sealed_seq`` the
    last line that a hash seals; ``edited`` the lines of which one was changed, first and last.

    ``previous`` is the writer that its writer follows, and how far that one came. ``told`` are
    holes that its own ``log.repaired`` name. ``left_hash`` is the chain over what is
    left of its writer up to here: that of a whole log is ``hash``.
    """

    path: Path
    name: str
    writer: str
    boot_id: str
    lines: int
    hash: str
    left_hash: str
    runs: tuple[Run, ...]
    previous: tuple[str, int] | None = None
    sealed_seq: int = 0
    edited: tuple[tuple[int, int], ...] = ()
    bad: tuple[BadPlace, ...] = ()
    told: tuple[Told, ...] = ()
    doubled: int = 0
    in_order: bool = True
    torn_bytes: int = 0
    text_bytes: int = 0

    def events(self) -> Iterator[Event]:
        """Its events by seq, each once; lines that cannot be read are passed over."""
        found = _events(self)
        return found if self.in_order and not self.doubled else _sorted(found)


def _events(item: Judged) -> Iterator[Event]:
    writer, boot_id = item.writer, item.boot_id
    try:
        for line in lines(item.path):
            if not line.whole:
                return
            try:
                yield decode(line.raw, writer, boot_id)
            except BadLine:
                continue
    except packed.Unreadable:
        return


def _sorted(found: Iterator[Event]) -> Iterator[Event]:
    by_seq: dict[int, Event] = {}
    for event in found:
        by_seq.setdefault(event.seq, event)
    return iter([by_seq[seq] for seq in sorted(by_seq)])


def lines_by_seq(path: Path, first: int = 0, last: int = 2**63) -> Iterator[tuple[int, bytes]]:
    """The readable lines of a segment from ``first`` to ``last``, as (seq, raw)."""
    try:
        for line in lines(path):
            try:
                seq = decode(line.raw).seq
            except BadLine:
                continue
            if first <= seq <= last:
                yield seq, line.raw
    except packed.Unreadable:
        return


def opened_inside(path: Path) -> Event | None:
    """The ``log.opened`` of a segment that does not begin with it."""
    for _, raw in lines_by_seq(path):
        event = decode(raw)
        if event.name == "log.opened":
            return event
    return None
