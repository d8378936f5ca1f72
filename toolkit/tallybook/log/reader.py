"""Reading the log: segments in the order of history, their lines, their events, the hash chain."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tallybook import layout as layouts
from tallybook import packed
from tallybook.errors import LogDamaged, TallybookError
from tallybook.event import BadLine, Event, decode
from tallybook.layout import Layout
from tallybook.log import anchor as anchors
from tallybook.log import torn
from tallybook.log.chain import NO_HASH, link
from tallybook.log.chain import Position as Position
from tallybook.log.marks import known_marks


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a segment without its newline; ``whole`` is False for a torn tail."""

    number: int
    offset: int
    raw: bytes
    whole: bool = True

    @property
    def end(self) -> int:
        """The offset behind this line."""
        return self.offset + len(self.raw) + self.whole


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment and the ``log.opened`` that it begins with; None where that line is damaged.

    ``writer`` is then the one whose other segments carry the same eight digits in their names.
    """

    path: Path
    writer: str
    opened: Event | None

    @property
    def name(self) -> str:
        """The name of the segment, whether its file is compressed or not."""
        return layouts.segment_name(self.path)

    @property
    def first_seq(self) -> int:
        """The sequence of the first line, by the file name."""
        return layouts.first_seq(self.name)


def lines(path: Path, offset: int = 0, number: int = 0) -> Iterator[Line]:
    """The lines of a segment from ``offset`` (in its text) on; ``number`` lines stand before it.

    Raises packed.Unreadable at the place where an archive is damaged.
    """
    with packed.reading(path) as file:
        file.seek(offset)
        for raw in file:
            number += 1
            whole = raw.endswith(b"\n")
            yield Line(number, offset, raw[:-1] if whole else raw, whole)
            offset += len(raw)


def segment(path: Path) -> Segment:
    """The segment at ``path``."""
    short = path.name[:8]
    try:
        first = next(lines(path), None)
        event = decode(first.raw) if first and first.whole else None
    except (BadLine, packed.Unreadable):
        return Segment(path, short, None)
    if event is None:
        return Segment(path, short, None)
    opened = event if event.name == "log.opened" else None
    return Segment(path, opened.writer if opened else short, opened)


def segments(layout: Layout) -> list[Segment]:
    """All segments in the order of history: writers by their links, then by sequence."""
    found = _listed(layout)
    known = {item.writer[:8]: item.writer for item in found if item.opened}
    found = [replace(item, writer=known.get(item.writer, item.writer)) for item in found]
    order = {writer: place for place, writer in enumerate(_writers(found))}
    return sorted(found, key=lambda item: (order[item.writer], item.first_seq))


def _listed(layout: Layout) -> list[Segment]:
    """Every segment; where one was pruned since it was listed, the list is made again."""
    while True:
        try:
            return [segment(path) for path in layout.segments()]
        except FileNotFoundError:
            if not layout.log.is_dir():
                raise TallybookError(f"{layout.log} is gone: the book was removed") from None


def _writers(found: list[Segment]) -> list[str]:
    """The writers, each after the one it followed; those with no link by time of opening."""
    previous: dict[str, str] = {}
    began: dict[str, str] = {}
    for item in found:
        began.setdefault(item.writer, item.opened.occurred_at if item.opened else "")
        before = item.opened.get("previous_writer") if item.opened else None
        if before and before != item.writer:
            previous[item.writer] = before
    ordered: list[str] = []
    for writer in sorted(began, key=lambda name: began[name]):
        chain = [writer]
        while (before := previous.get(chain[-1], "")) in began and before not in chain:
            chain.append(before)
        ordered.extend(name for name in reversed(chain) if name not in ordered)
    return ordered


@dataclass(frozen=True, slots=True)
class Hole:
    """Lines that are missing: ``first_seq`` to ``last_seq`` of ``writer``."""

    writer: str
    first_seq: int
    last_seq: int


@dataclass
class Damage:
    """What a reading of a damaged log left out. ``last_hole`` is the ordinal before it."""

    holes: list[Hole] = field(default_factory=list)
    quarantined: int = 0
    doubled: int = 0
    last_hole: int = 0


def history(
    layout: Layout, after: Position | None = None, damage: Damage | None = None
) -> Iterator[tuple[Event, Position]]:
    """Every event after ``after``, with the position behind it.

    Without ``after`` it begins at the beginning, or where the log was pruned.

    A torn tail or a torn write ends the history. A torn or foreign line before the end raises
    LogDamaged or, where ``damage`` is given, is noted there and passed over.
    """
    position = after or anchors.position(layout)
    found = segments(layout)
    names = [item.name for item in found]
    start = names.index(position.segment) if position.segment in names else 0
    for item in found[start:]:
        offset = position.offset if item.name == position.segment else 0
        before: Event | None = None
        for line in _readable(item, offset, damage):
            ends = item is found[-1] and is_torn(item, line, before)
            if ends and not (line.whole and _is_seen(layout, position)):
                return
            before = event = _event(item, line, position, damage)
            if event is None:
                position = _passed_over(position, line, item.name)
                continue
            position = advance(position, event, line, item.name)
            yield event, position


def is_torn(item: Segment, line: Line, before: Event | None) -> bool:
    """Whether the last segment ends before ``line``: what stands from there on was never synced.

    ``before`` is the event before the line, where it was read.
    """
    if not line.whole or b"\0" not in line.raw:
        return not line.whole
    behind = (later.raw for later in lines(item.path, line.end))
    return torn.is_torn_write(line.offset, line.raw, before, behind)


def _is_seen(layout: Layout, position: Position) -> bool:
    """Whether something in the book has seen lines behind ``position``."""
    seen = [mark.seq for mark in known_marks(layout) if mark.writer == position.writer]
    return max(seen, default=0) > position.seq


def _readable(item: Segment, offset: int, damage: Damage | None) -> Iterator[Line]:
    """The lines of a segment up to where its archive is damaged; ``damage`` has noted that."""
    end = offset
    try:
        for line in lines(item.path, offset):
            end = line.end
            yield line
    except packed.Unreadable as error:
        if damage is None:
            raise _damaged(item.path, Line(0, end, b""), str(error)) from None
        damage.quarantined += 1


def has_more(layout: Layout, position: Position) -> bool:
    """Whether whole lines stand behind ``position``. Raises LogDamaged where they are damaged."""
    return _may_have_more(layout, position) and any(True for _ in history(layout, position))


def _may_have_more(layout: Layout, position: Position) -> bool:
    """As ``has_more``, by names and sizes alone: one writer's segments are in order by name."""
    for path in layout.segments():
        name = layouts.segment_name(path)
        if name == position.segment:
            if not packed.is_packed(path) and path.stat().st_size > position.offset:
                return True
        elif name[:8] != position.writer[:8] or layouts.first_seq(name) > position.seq:
            return True
    return False


def reaches(layout: Layout, position: Position) -> bool:
    """Whether the log has the line that ``position`` stands behind, so that one can go on there.

    Not so where the log lost its end, or was pruned beyond that place.
    """
    if not position.segment:
        return True
    if position.seq <= layouts.pruned_ends(layout).get(position.writer[:8], 0):
        return False
    plain = layout.log / position.segment
    if plain.exists():
        return plain.stat().st_size >= position.offset
    if not packed.packed(plain).exists():
        return False
    return _text_bytes(layout, position.segment) >= position.offset


def _text_bytes(layout: Layout, name: str) -> float:
    """The length of the text of a compressed segment, by its manifest; without it, any."""
    try:
        return int(json.loads(layout.manifest(name).read_bytes())["bytes"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return math.inf


def advance(position: Position, event: Event, line: Line, name: str) -> Position:
    """The position behind ``line`` of the segment ``name``, which holds ``event``."""
    before = position.hash if event.writer == position.writer else NO_HASH
    return Position(
        writer=event.writer,
        seq=event.seq,
        hash=link(before, line.raw),
        segment=name,
        offset=line.end,
        ordinal=position.ordinal + 1,
        boot_id=event.boot_id,
    )


def _event(item: Segment, line: Line, position: Position, damage: Damage | None) -> Event | None:
    """The event of a line; None for one that ``damage`` has noted."""
    boot_id = item.opened.boot_id if item.opened else position.boot_id
    try:
        event = decode(line.raw, item.writer, boot_id)
    except BadLine as error:
        if damage is None:
            raise _damaged(item.path, line, str(error)) from None
        damage.quarantined += 1
        return None
    due = position.seq + 1 if event.writer == position.writer else 1
    if event.seq == due:
        return event
    if damage is None:
        raise _damaged(item.path, line, f"seq is {event.seq} where {due} is due")
    if event.seq < due:
        damage.doubled += 1
        return None
    damage.holes.append(Hole(event.writer, due, event.seq - 1))
    damage.last_hole = position.ordinal
    return event


def _passed_over(position: Position, line: Line, name: str) -> Position:
    """The position behind a line that holds no event; the chain goes over its bytes too."""
    same = name == position.segment
    before = position.hash if same else NO_HASH
    return position._replace(hash=link(before, line.raw), segment=name, offset=line.end)


def _damaged(path: Path, line: Line, reason: str) -> LogDamaged:
    return LogDamaged(
        f"{path} byte {line.offset}: {reason}; 'tallybook log verify' lists all damage, "
        "'tallybook rebuild' folds what is left"
    )
