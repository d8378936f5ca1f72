"""Verifying a log: every line, every sequence, the hash chain, and the end that was promised."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from tallybook.event import BadLine, Event, decode
from tallybook.layout import Layout
from tallybook.log.reader import NO_HASH, Line, Segment, lines, link, segments


@dataclass(frozen=True, slots=True)
class Mark:
    """A high-water mark: the log once reached ``seq`` of ``writer`` with ``hash``."""

    source: str
    writer: str
    seq: int
    hash: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in the log, with its place; a lost end has none."""

    file: str | None
    line: int | None
    offset: int | None
    reason: str


@dataclass
class Verification:
    """What ``verify`` found. ``complete`` is False for any hole, edit, missing or lost line."""

    segments: int = 0
    lines: int = 0
    writers: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether the log is whole and unedited up to its promised end."""
        return not self.problems


def verify(layout: Layout, marks: Iterable[Mark] = ()) -> Verification:
    """Read the whole log and check it; changes nothing, needs no lock.

    ``marks`` are where the log is known to have reached (state.db, metrics/latest.json).
    """
    marks = list(marks)
    walk = _Walk({(mark.writer, mark.seq): mark for mark in marks})
    found = segments(layout)
    for item in found:
        walk.segment(item, last=item is found[-1])
    walk.ended(marks)
    walk.result.segments = len(found)
    return walk.result


def latest_mark(layout: Layout) -> Mark | None:
    """The high-water mark in metrics/latest.json; None where there is no such file."""
    try:
        raw = json.loads(layout.latest.read_bytes())
        return Mark("metrics/latest.json", raw["writer"], raw["seq"], raw["hash"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


class _Walk:
    def __init__(self, marks: dict[tuple[str, int], Mark]) -> None:
        self.result = Verification()
        self._marks = marks
        self._ends: dict[str, tuple[int, bytes]] = {}

    def segment(self, item: Segment, *, last: bool) -> None:
        writer = item.writer
        if writer not in self.result.writers:
            self.result.writers.append(writer)
        if item.opened:
            self._check_opened(item, item.opened)
        else:
            self._problem(item, Line(1, 0, b""), "does not begin with a whole log.opened")
        for line in lines(item.path):
            if not line.whole and last:
                self.result.warnings.append(
                    f"{item.path.name}: torn tail of {len(line.raw)} bytes, never acknowledged; "
                    "the next append cuts it"
                )
                return
            self._line(item, line, writer)

    def ended(self, marks: list[Mark]) -> None:
        for mark in marks:
            seq = self._ends.get(mark.writer, (0, NO_HASH))[0]
            if seq < mark.seq:
                self.result.problems.append(
                    Problem(
                        None,
                        None,
                        None,
                        f"lost end: {mark.source} saw seq {mark.seq} of writer {mark.writer[:8]}, "
                        f"the log ends at {seq}",
                    )
                )

    def _check_opened(self, item: Segment, opened: Event) -> None:
        before = opened.get("previous_writer") or item.writer
        seq, hash_so_far = self._ends.get(before, (0, NO_HASH))
        due = opened.seq - 1 if before == item.writer else opened.get("previous_seq", 0)
        first = Line(1, 0, b"")
        if seq != due:
            self._problem(item, first, f"seq {due} should stand before it, found {seq}")
        elif opened.get("previous_hash") != hash_so_far.hex():
            self._problem(item, first, "the hash chain breaks: a line before it was edited")

    def _line(self, item: Segment, line: Line, writer: str) -> None:
        self.result.lines += 1
        seq, hash_so_far = self._ends.get(writer, (0, NO_HASH))
        hash_now = link(hash_so_far, line.raw)
        try:
            event = decode(line.raw)
        except BadLine as error:
            self._ends[writer] = (seq + 1, hash_now)
            self._problem(item, line, f"{error} (after seq {seq})")
            return
        if event.seq != seq + 1:
            self._problem(item, line, f"seq {event.seq} where {seq + 1} is due")
        self._ends[writer] = (event.seq, hash_now)
        self._told_loss(item, line, event)
        mark = self._marks.get((writer, event.seq))
        if mark and mark.hash != hash_now.hex():
            self._problem(item, line, f"the hash is not the one in {mark.source}: an edit before")

    def _told_loss(self, item: Segment, line: Line, event: Event) -> None:
        first, last = event.get("first_lost_seq"), event.get("last_lost_seq")
        if event.name == "log.repaired" and first:
            lost = f"seq {first} to {last} of writer {str(event.get('writer'))[:8]}"
            self._problem(item, line, f"tells that {lost} were lost ({event.get('reason')})")

    def _problem(self, item: Segment, line: Line, reason: str) -> None:
        self.result.problems.append(Problem(item.path.name, line.number, line.offset, reason))
