"""Pruning the log: closed segments that a checkpoint covers are removed, oldest first.

    checkpoint → anchor (position, chain) synced → files unlinked

What the anchor covers is no part of the log any more, so a crash leaves at worst some files that
nobody reads; the next prune removes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tallybook import layout as layouts
from tallybook.book import checkpoints
from tallybook.book.book import Book
from tallybook.layout import Layout
from tallybook.log import anchor as anchors
from tallybook.log import archived
from tallybook.log import manifest as manifests
from tallybook.log.anchor import Anchor
from tallybook.log.chain import Position
from tallybook.log.reader import Segment, history, lines, segments


@dataclass(frozen=True, slots=True)
class Cut:
    """A segment that is, or would be, removed."""

    segment: str
    bytes: int
    last_occurred_at: str


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a prune removed, or would remove. ``last_seq`` of ``writer`` is the last line of it;
    ``checkpoint`` is the state that a fold begins with from now on, None in a dry run.
    ``stopped_at`` says which segment the archive does not stand for, and why."""

    segments: list[Cut]
    bytes: int
    events: int
    writer: str | None
    last_seq: int | None
    checkpoint: str | None
    dry_run: bool
    stopped_at: str | None = None


def prune(
    book: Book, before: str | None = None, *, archive: Path | None = None, dry_run: bool = False
) -> Pruned:
    """Remove closed segments whose last event is older than ``before`` (RFC 3339; None: any).

    A checkpoint is made first, and nothing that it does not cover is removed; with ``archive``
    also nothing from the first segment on that the archive in that folder does not hold, whole
    and proven. With ``dry_run`` nothing is changed. Raises LogDamaged where a segment to be removed
    is not whole.
    """
    layout = book.layout
    made = None if dry_run else checkpoints.make(layout, book.moment().wall())
    found = list(_old(layout, made.position if made else book.position(), before))
    found, stopped_at = _archived(layout, found, archive) if archive else (found, None)
    began = anchors.position(layout).ordinal
    anchor = _anchor(layout, {cut.segment for cut in found})
    if not dry_run:
        with book.hold():
            if found:
                anchors.write(layout, anchor, book.moment().wall())
            _remove_covered(layout)
    return Pruned(
        segments=found,
        bytes=sum(cut.bytes for cut in found),
        events=anchor.position.ordinal - began,
        writer=anchor.position.writer if found else None,
        last_seq=anchor.position.seq if found else None,
        checkpoint=made.path.name if made else None,
        dry_run=dry_run,
        stopped_at=stopped_at,
    )


def _old(layout: Layout, covered: Position, before: str | None) -> Iterator[Cut]:
    """The segments from the start of the log on that ``covered`` lies behind."""
    for item in segments(layout):
        if item.name == covered.segment:
            return
        last = _last_occurred_at(layout, item)
        if before is not None and last >= before:
            return
        yield Cut(item.name, item.path.stat().st_size, last)


def _archived(layout: Layout, cuts: list[Cut], folder: Path) -> tuple[list[Cut], str | None]:
    """The segments up to the first that the archive does not stand for, and why it does not."""
    items = {item.name: item for item in segments(layout)}
    for number, cut in enumerate(cuts):
        if reason := archived.why_not(folder, layout, items[cut.segment]):
            return cuts[:number], f"{cut.segment}: {reason}"
    return cuts, None


def _last_occurred_at(layout: Layout, item: Segment) -> str:
    proof = manifests.read(layout, item.name)
    if proof:
        return proof.last_occurred_at
    last = b"{}"
    for line in lines(item.path):
        last = line.raw
    return str(json.loads(last).get("occurred_at", ""))


def _anchor(layout: Layout, cut: set[str]) -> Anchor:
    """The anchor behind the segments in ``cut``, each read whole and checked."""
    before = anchors.read(layout)
    position = before.position if before else Position()
    ends = dict(before.ends) if before else {}
    for _, place in history(layout) if cut else ():
        if place.segment not in cut:
            break
        position = place
        ends[place.writer] = (place.seq, place.hash)
    return Anchor(position, ends)


def _remove_covered(layout: Layout) -> None:
    """Unlink what the anchor covers; under the lock."""
    ends = layouts.pruned_ends(layout)
    for path in list(layout.log.iterdir()):
        first = layouts.first_seq(path.name)
        if 0 < first <= ends.get(path.name[:8], 0):
            path.unlink(missing_ok=True)
