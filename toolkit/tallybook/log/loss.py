"""What the log has lost: lines that something in the book has seen and it no longer has.

Asked when a book is opened. The answer makes a new writer begin, so that no ``seq`` is used twice;
that writer tells the loss in its first lines, where ``told`` finds it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import NamedTuple

from tallybook import packed
from tallybook.event import BadLine, decode
from tallybook.layout import Layout
from tallybook.log import anchor as anchors
from tallybook.log.chain import Position
from tallybook.log.marks import Mark, known_marks
from tallybook.log.reader import Hole, Segment, lines, segments

_COVERED = "covered"


class _Told(NamedTuple):
    """A loss as ``log.repaired`` tells it."""

    hole: Hole
    reason: str


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
    for writer in sorted(_unknown_writers(layout, seen.keys() - {end.writer})):
        return Hole(writer, 1, seen[writer])
    return None


def lost_marks(layout: Layout, end: Position, marks: Iterable[Mark]) -> list[Mark]:
    """Those of ``marks`` that a log with its end at ``end`` no longer reaches, and tells no loss
    of."""
    marks = list(marks)
    unknown = _unknown_writers(layout, {mark.writer for mark in marks} - {end.writer})
    return [
        mark
        for mark in marks
        if mark.writer in unknown or (mark.writer == end.writer and mark.seq > end.seq)
    ]


def told(layout: Layout) -> list[Hole]:
    """The losses that the log itself tells of, each once, but for those that were pruned, and for
    those that a later rebuild covered: it began with a state that had seen the lost lines.

    A loss makes a new writer begin, so the first lines of each writer are all that is read.
    """
    begun = [item for item in segments(layout) if item.first_seq == 1]
    said = [one for item in begun for one in _told_at_the_start(item) if one.hole.last_seq]
    covered = [one.hole for one in said if one.reason == _COVERED]
    open_ = (one.hole for one in said if not any(_is_inside(one.hole, of) for of in covered))
    return list(dict.fromkeys(open_))


def _furthest(marks: Iterable[Mark]) -> dict[str, int]:
    seen: dict[str, int] = {}
    for mark in marks:
        seen[mark.writer] = max(mark.seq, seen.get(mark.writer, 0))
    return seen


def _unknown_writers(layout: Layout, writers: Set[str]) -> set[str]:
    """Those of which the log has no line, had none before it was pruned, and tells no loss."""
    if not writers:
        return set()
    found = segments(layout)
    anchor = anchors.read(layout)
    known = {item.writer for item in found} | set(anchor.ends if anchor else ())
    for item in found:
        if item.first_seq == 1:
            known |= {one.hole.writer for one in _told_at_the_start(item)}
    short = {writer[:8] for writer in known}
    return {writer for writer in writers if writer[:8] not in short}


def _is_inside(hole: Hole, of: Hole) -> bool:
    same = hole.writer == of.writer
    return same and of.first_seq <= hole.first_seq and hole.last_seq <= of.last_seq


def _told_at_the_start(item: Segment) -> list[_Told]:
    """What ``log.repaired`` says in the first lines; ``last_seq`` is 0 where no line was lost."""
    found: list[_Told] = []
    try:
        for line in lines(item.path):
            event = decode(line.raw)
            if not event.name.startswith("log."):
                break
            if event.name == "log.repaired":
                lost = event.get("first_lost_seq") or 0, event.get("last_lost_seq") or 0
                hole = Hole(str(event.get("writer")), *lost)
                found.append(_Told(hole, str(event.get("reason"))))
    except (BadLine, packed.Unreadable):
        return found
    return found
