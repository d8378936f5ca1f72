"""Which lines are taken from which segment, where some stand twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from tallybook.event import Event
from tallybook.recover.evidence import Judged, lines_by_seq


@dataclass(frozen=True, slots=True)
class Edit:
    """Lines of which at least one was changed after it was written."""

    segment: str
    writer: str
    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines that are taken from a segment."""

    item: Judged
    first_seq: int
    last_seq: int
    first_at: str
    last_at: str


def choose(of_one: list[Judged]) -> tuple[list[Piece], list[Edit]]:
    """The lines to take of one writer, each once; and those whose copies differ."""
    ranked = sorted(
        ((item, run) for item in of_one for run in item.runs),
        key=lambda pair: (
            pair[0].sealed_seq < pair[1].last_seq,
            bool(pair[0].edited),
            pair[0].name,
        ),
    )
    chosen: list[Piece] = []
    edits: list[Edit] = []
    for item, run in ranked:
        free = [(run.first_seq, run.last_seq)]
        for other in list(chosen):
            free = [part for one in free for part in _without(one, other)]
            if not other.item.sealed_seq >= other.last_seq:
                edits += _differing(item, other)
        chosen += [Piece(item, first, last, run.first_at, run.last_at) for first, last in free]
    return sorted(chosen, key=lambda piece: piece.first_seq), edits


def _without(part: tuple[int, int], other: Piece) -> Iterator[tuple[int, int]]:
    """What of ``part`` is outside ``other``."""
    if part[0] < other.first_seq:
        yield part[0], min(part[1], other.first_seq - 1)
    if part[1] > other.last_seq:
        yield max(part[0], other.last_seq + 1), part[1]


def _differing(item: Judged, other: Piece) -> list[Edit]:
    """Lines that both hold and that are not the same; nothing says which is right."""
    shared = [
        (max(run.first_seq, other.first_seq), min(run.last_seq, other.last_seq))
        for run in item.runs
    ]
    shared = [part for part in shared if part[0] <= part[1]]
    if not shared or other.item is item:
        return []
    first, last = min(part[0] for part in shared), max(part[1] for part in shared)
    theirs = {seq: hash(raw) for seq, raw in lines_by_seq(other.item.path, first, last)}
    ours = lines_by_seq(item.path, first, last)
    changed = sorted(seq for seq, raw in ours if theirs.get(seq, hash(raw)) != hash(raw))
    return [Edit(item.name, item.writer, seq, seq) for seq in changed]


def taken(pieces: list[Piece]) -> Iterator[Event]:
    """The events of ``pieces``, which are in order; a segment is read once."""
    for _, group in groupby(pieces, key=lambda piece: piece.item.name):
        of_one = list(group)
        waiting = iter(of_one)
        piece = next(waiting, None)
        for event in of_one[0].item.events():
            while piece and event.seq > piece.last_seq:
                piece = next(waiting, None)
            if piece is None:
                break
            if event.seq >= piece.first_seq:
                yield event
