"""What the log has lost at its end: lines that something in the book has seen and it no longer has.

Asked when a book is opened. The answer makes a new writer begin, so that no ``seq`` is used twice.
"""

from __future__ import annotations

from collections.abc import Iterable

from tallybook.event import BadLine, decode
from tallybook.layout import Layout
from tallybook.log import anchor as anchors
from tallybook.log.chain import Position
from tallybook.log.reader import Hole, Segment, lines, segments
from tallybook.log.verify import Mark, known_marks


def lost_end(layout: Layout, end: Position, state: Position) -> Hole | None:
    """The lines after ``end`` that ``state``, latest.json or a checkpoint saw; None where none.

    Also all lines of a writer of which the log has not even a word.
    """
    marks = known_marks(layout)
    if state.writer:
        marks.append(Mark("state.db", state.writer, state.seq, state.hash.hex()))
    seen = _furthest(marks)
    if seen.get(end.writer, 0) > end.seq:
        return Hole(end.writer, end.seq + 1, seen[end.writer])
    foreign = seen.keys() - {end.writer}
    for writer in sorted(foreign - _known_writers(layout, end) if foreign else ()):
        return Hole(writer, 1, seen[writer])
    return None


def _furthest(marks: Iterable[Mark]) -> dict[str, int]:
    seen: dict[str, int] = {}
    for mark in marks:
        seen[mark.writer] = max(mark.seq, seen.get(mark.writer, 0))
    return seen


def _known_writers(layout: Layout, end: Position) -> set[str]:
    """The writers of which the log has lines, had them before it was pruned, or tells the loss."""
    found = segments(layout)
    anchor = anchors.read(layout)
    known = {item.writer for item in found} | set(anchor.ends if anchor else ())
    for item in found:
        if item.writer == end.writer and item.first_seq == 1:
            known |= _told_at_the_start(item)
    return known


def _told_at_the_start(item: Segment) -> set[str]:
    told: set[str] = set()
    for line in lines(item.path):
        try:
            event = decode(line.raw)
        except BadLine:
            return told
        if not event.name.startswith("log."):
            return told
        if event.name == "log.repaired":
            told.add(str(event.get("writer")))
    return told
