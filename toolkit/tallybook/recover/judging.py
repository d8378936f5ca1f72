"""Judging a segment: is it proven whole by its manifest, else what do its lines say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from tallybook import packed
from tallybook.event import BadLine, Event, decode
from tallybook.log import manifest as manifests
from tallybook.log.chain import NO_HASH, link
from tallybook.log.manifest import Manifest
from tallybook.log.reader import Line, Segment, lines
from tallybook.recover.evidence import BadPlace, Judged, Run, Told, lines_by_seq

Seals = Mapping[tuple[str, int], set[bytes]]
"""Hashes of the chain by (first eight digits of the writer, seq)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A segment to be judged, with what is known of it: the hashes kept elsewhere, its manifest,
    and the chain over what is left of its writer before it."""

    item: Segment
    is_last: bool
    seals: Seals
    proof: Manifest | None
    left_hash: bytes
    deep: bool


def judge(asked: Asked) -> Judged:
    """What a segment holds. An archive that its manifest proves whole is not read line by line;
    where ``deep`` is asked for its chain is."""
    item, proof = asked.item, asked.proof
    if not (proof and item.opened and _is_proven(asked, proof)):
        return _Walk(asked).judged()
    run = Run(proof.first_seq, proof.last_seq, proof.opened_at, proof.last_occurred_at)
    return Judged(
        path=item.path,
        name=item.name,
        writer=item.writer,
        boot_id=item.opened.boot_id,
        lines=proof.lines,
        hash=proof.hash,
        left_hash=_left_hash(asked, proof),
        runs=(run,),
        previous=_previous(item.opened),
        sealed_seq=proof.last_seq,
        told=tuple(_told_at_start(item)),
        text_bytes=proof.bytes,
    )


def _previous(opened: Event) -> tuple[str, int] | None:
    before = opened.get("previous_writer")
    return (str(before), int(opened.get("previous_seq") or 0)) if before else None


def _is_proven(asked: Asked, proof: Manifest) -> bool:
    item = asked.item
    sealed = asked.seals.get((item.writer[:8], proof.last_seq), set())
    if not packed.is_packed(item.path) or proof.segment != item.name:
        return False
    if bytes.fromhex(proof.hash) not in sealed or item.first_seq != proof.first_seq:
        return False
    if not asked.deep:
        return manifests.digest(item.path) == proof.archive_digest
    ends = manifests.walk(item)
    return ends is not None and (ends.hash.hex(), ends.lines) == (proof.hash, proof.lines)


def _left_hash(asked: Asked, proof: Manifest) -> str:
    """The chain over what is left, behind a segment that is whole itself."""
    chain = asked.left_hash
    if chain == _start(asked.item):
        return proof.hash
    for line in lines(asked.item.path):
        chain = link(chain, line.raw)
    return chain.hex()


def _told_at_start(item: Segment) -> Iterator[Told]:
    for line in lines(item.path):
        event = decode(line.raw)
        if not event.name.startswith("log."):
            return
        yield from _told(event)


def _told(event: Event) -> Iterator[Told]:
    if event.name == "log.repaired" and event.get("first_lost_seq"):
        lost = event["first_lost_seq"], event["last_lost_seq"]
        reason = str(event.get("reason"))
        edited, covered = reason.startswith("edited"), reason.endswith("covered")
        yield Told(event.seq, str(event.get("writer")), *lost, edited, covered)


@dataclass
class _Walk:
    """A segment read line by line."""

    asked: Asked
    hash: bytes = NO_HASH
    left_hash: bytes = NO_HASH
    item: Segment = field(init=False)
    previous: tuple[str, int] | None = None
    writer: str = ""
    boot_id: str = ""
    lines: int = 0
    torn_bytes: int = 0
    text_bytes: int = 0
    doubled: int = 0
    sealed_seq: int = 0
    highest: int = 0
    in_order: bool = True
    is_broken: bool = False
    runs: list[Run] = field(default_factory=list)
    bad: list[BadPlace] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    edited: list[tuple[int, int]] = field(default_factory=list)

    def judged(self) -> Judged:
        """The whole segment."""
        item = self.item = self.asked.item
        self.writer, self.hash, self.left_hash = item.writer, _start(item), self.asked.left_hash
        self.boot_id = item.opened.boot_id if item.opened else ""
        self.is_broken = item.opened is None  # what its chain begins with is not known
        self._walk()
        self.runs.sort(key=lambda run: run.first_seq)
        if self.doubled:
            self.edited += _changed_copies(item.path)
        if (self.doubled or not self.in_order) and not self.bad and not self._has_hole():
            self._walk_in_order()
        return Judged(
            path=item.path,
            name=item.name,
            writer=self.writer,
            boot_id=self.boot_id,
            lines=self.lines,
            hash=self.hash.hex(),
            left_hash=self.left_hash.hex(),
            runs=tuple(self.runs),
            previous=self.previous,
            sealed_seq=self.sealed_seq,
            edited=tuple(self.edited),
            bad=tuple(self.bad),
            told=tuple(self.told),
            doubled=self.doubled,
            in_order=self.in_order,
            torn_bytes=self.torn_bytes,
            text_bytes=self.text_bytes,
        )

    def _walk(self) -> None:
        line = Line(0, 0, b"", whole=False)
        try:
            for line in lines(self.item.path):
                if not line.whole and self.asked.is_last:
                    self.torn_bytes = len(line.raw)
                    return
                self._take(line)
        except packed.Unreadable as error:
            self._is_bad(Line(line.number + 1, line.end, b""), str(error))

    def _has_hole(self) -> bool:
        return any(b.first_seq != a.last_seq + 1 for a, b in pairwise(self.runs))

    def _walk_in_order(self) -> None:
        """Go over the chain of lines that are all there, as they once stood."""
        once = dict(reversed(list(lines_by_seq(self.item.path))))
        opened = decode(once[min(once)])
        self.is_broken = opened.name != "log.opened"
        self.hash = _start(replace(self.item, opened=opened))
        for seq in sorted(once):
            self.hash = link(self.hash, once[seq])
            self._compare(seq)

    def _take(self, line: Line) -> None:
        self.lines += 1
        self.text_bytes = line.end
        is_same = self.hash == self.left_hash
        self.hash = link(self.hash, line.raw)
        self.left_hash = self.hash if is_same else link(self.left_hash, line.raw)
        try:
            event = decode(line.raw, self.writer, self.boot_id)
        except BadLine as error:
            self._is_bad(line, str(error))
            return
        if event.name == "log.opened":
            self.writer, self.boot_id = event.writer, event.boot_id
            self.previous = _previous(event) or self.previous
        self._place(event)
        self._compare(event.seq)
        self.told += _told(event)

    def _is_bad(self, line: Line, reason: str) -> None:
        self.is_broken = True
        self.bad.append(BadPlace(self.item.name, line.number, line.offset, reason))

    def _place(self, event: Event) -> None:
        """Put a line to the run that it goes on, or begin another."""
        last, seq = self.runs[-1] if self.runs else None, event.seq
        is_new = seq > self.highest
        self.highest = max(seq, self.highest)
        if not is_new and any(run.first_seq <= seq <= run.last_seq for run in self.runs):
            self.is_broken, self.doubled = True, self.doubled + 1
        elif last and seq == last.last_seq + 1:
            last.last_seq, last.last_at = seq, event.occurred_at
        else:
            self.is_broken = self.is_broken or last is not None
            self.in_order = self.in_order and is_new
            self.runs.append(Run(seq, seq, event.occurred_at, event.occurred_at))

    def _compare(self, seq: int) -> None:
        """Where a hash of this place is kept, see whether it holds."""
        kept = self.asked.seals.get((self.writer[:8], seq))
        if not kept or self.is_broken:
            return  # a hash over what a hole left says nothing of what stood there before
        if self.hash in kept:
            self.sealed_seq = seq
        elif self.left_hash not in kept:
            first = self.sealed_seq + 1 if self.sealed_seq else self.runs[0].first_seq
            self.edited.append((first, seq))


def _start(item: Segment) -> bytes:
    """The hash before a segment, whatever its file is called; zeros before the first line of a
    writer, and where what should say so was changed."""
    if item.opened is None or item.opened.seq == 1:
        return NO_HASH
    try:
        return bytes.fromhex(item.opened["previous_hash"])
    except (ValueError, TypeError, KeyError):
        return NO_HASH


def _changed_copies(path: Path) -> list[tuple[int, int]]:
    """The lines of which a segment holds two that differ."""
    first: dict[int, int] = {}
    changed = {
        seq for seq, raw in lines_by_seq(path) if first.setdefault(seq, hash(raw)) != hash(raw)
    }
    return [(seq, seq) for seq in sorted(changed)]
