"""Verifying a log: every line, every sequence, the hash chain, and the end that was promised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tallybook import packed
from tallybook.event import BadLine, Event, decode
from tallybook.layout import MANIFEST_SUFFIX, SEGMENT_SUFFIX, Layout
from tallybook.log import anchor as anchors
from tallybook.log import manifest as manifests
from tallybook.log.anchor import Anchor
from tallybook.log.chain import NO_HASH, link
from tallybook.log.manifest import Manifest
from tallybook.log.marks import Mark
from tallybook.log.reader import Line, Segment, is_torn, lines, segments


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

    ``marks`` are where the log is known to have reached (state.db, metrics/latest.json,
    checkpoints); the manifests add theirs. Where the log was pruned it begins at the anchor.
    """
    proofs = {proof.segment: proof for proof in manifests.read_all(layout)}
    marks = [*marks, *map(_mark, proofs.values())]
    walk = _Walk(marks, anchors.read(layout), proofs)
    found = segments(layout)
    for item in found:
        walk.segment(item, last=item is found[-1])
    walk.ended(marks)
    walk.result.segments = len(found)
    return walk.result


def _mark(proof: Manifest) -> Mark:
    source = proof.segment.removesuffix(SEGMENT_SUFFIX) + MANIFEST_SUFFIX
    return Mark(source, proof.writer, proof.last_seq, proof.hash)


class _Walk:
    def __init__(
        self, marks: Iterable[Mark], anchor: Anchor | None, proofs: Mapping[str, Manifest]
    ) -> None:
        self.result = Verification()
        self._proofs = proofs
        self._marks: dict[tuple[str, int], list[Mark]] = {}
        for mark in marks:
            self._marks.setdefault((mark.writer, mark.seq), []).append(mark)
        self._ends: dict[str, tuple[int, bytes]] = dict(anchor.ends) if anchor else {}

    def segment(self, item: Segment, *, last: bool) -> None:
        writer = item.writer
        if writer not in self.result.writers:
            self.result.writers.append(writer)
        if item.opened:
            self._check_opened(item, item.opened)
        line, before = Line(0, 0, b"", whole=False), None
        try:
            for line in lines(item.path):
                if last and is_torn(item, line, before):
                    self._torn_tail(item, line)
                    break
                if not item.opened and line.number == 1:
                    self._problem(item, line, "does not begin with a whole log.opened")
                before = self._line(item, line, writer)
        except packed.Unreadable as error:
            self._problem(item, Line(line.number + 1, line.end, b""), str(error))
        self._check_proof(item, line)

    def _torn_tail(self, item: Segment, line: Line) -> None:
        size = item.path.stat().st_size - line.offset
        self.result.warnings.append(
            f"{item.path.name}: torn tail of {size} bytes, never acknowledged; "
            "the next append cuts it"
        )

    def _check_proof(self, item: Segment, end: Line) -> None:
        """Whether a compressed segment is what its manifest says; ``end`` is its last line."""
        proof = self._proofs.get(item.name)
        if proof is None:
            if packed.is_packed(item.path):
                self.result.warnings.append(f"{item.path.name}: its manifest is missing")
            return
        begin = Line(1, 0, b"")
        if packed.is_packed(item.path) and manifests.digest(item.path) != proof.archive_digest:
            self._problem(item, begin, "this is not the archive of its manifest: it was edited")
        found = {"lines": end.number, "bytes": end.end, "first_seq": item.first_seq}
        for name, value in found.items():
            if getattr(proof, name) != value:
                told = f"its manifest says that {name} is {getattr(proof, name)}, found {value}"
                self._problem(item, begin, told)

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

    def _line(self, item: Segment, line: Line, writer: str) -> Event | None:
        self.result.lines += 1
        seq, hash_so_far = self._ends.get(writer, (0, NO_HASH))
        hash_now = link(hash_so_far, line.raw)
        try:
            event = decode(line.raw)
        except BadLine as error:
            self._ends[writer] = (seq + 1, hash_now)
            self._problem(item, line, f"{error} (after seq {seq})")
            return None
        if event.seq != seq + 1:
            self._problem(item, line, f"seq {event.seq} where {seq + 1} is due")
        self._ends[writer] = (event.seq, hash_now)
        self._told_loss(item, line, event)
        for mark in self._marks.get((writer, event.seq), ()):
            if mark.hash != hash_now.hex():
                told = f"the hash is not the one in {mark.source}: an edit before"
                self._problem(item, line, told)
        return event

    def _told_loss(self, item: Segment, line: Line, event: Event) -> None:
        first, last = event.get("first_lost_seq"), event.get("last_lost_seq")
        if event.name == "log.repaired" and first:
            lost = f"seq {first} to {last} of writer {str(event.get('writer'))[:8]}"
            self._problem(item, line, f"tells that {lost} were lost ({event.get('reason')})")

    def _problem(self, item: Segment, line: Line, reason: str) -> None:
        self.result.problems.append(Problem(item.path.name, line.number, line.offset, reason))
