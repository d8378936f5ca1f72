"""What is left of a whole log: its segments in the order of history, and what is missing.

The order is that of the writers' links, then of ``seq``, whatever the files are called. A line
that stands twice is taken once, from a sealed segment where there is one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tallybook.book import store as stores
from tallybook.event import Event
from tallybook.layout import Layout
from tallybook.log import anchor as anchors
from tallybook.log import manifest as manifests
from tallybook.log.chain import NO_HASH
from tallybook.log.marks import Mark
from tallybook.log.reader import Segment, segments
from tallybook.recover import ordering
from tallybook.recover.evidence import BadPlace, Judged, Told, opened_inside
from tallybook.recover.judging import Asked, judge
from tallybook.recover.pieces import Edit, Piece, choose, taken

_WRITER = 1 << 44
_END = 1 << 62
NO_DOUBT = -1


@dataclass(frozen=True, slots=True)
class Loss:
    """Lines that are missing, between ``after_at`` and ``before_at`` where those are known.

    ``known_from`` says who saw them; empty where the lines around them tell.
    """

    writer: str
    first_seq: int
    last_seq: int
    after_at: str | None = None
    before_at: str | None = None
    known_from: tuple[str, ...] = ()

    @property
    def events(self) -> int:
        """How many lines those are."""
        return self.last_seq - self.first_seq + 1


@dataclass(frozen=True, slots=True)
class Survey:
    """A log as it was found. A *place* is a number that orders all lines of all writers."""

    segments: list[Judged]
    writers: list[str]
    pieces: dict[str, list[Piece]]
    losses: list[Loss]
    edits: list[Edit]
    pruned: dict[str, int]
    marks: list[Mark]
    told: list[tuple[str, Told]]
    by_clock: list[str]

    @property
    def bad(self) -> list[BadPlace]:
        """The lines that are no event."""
        return [place for item in self.segments for place in item.bad]

    @property
    def doubled(self) -> int:
        """How many lines stand once more."""
        read = sum(run.last_seq - run.first_seq + 1 for item in self.segments for run in item.runs)
        return sum(item.doubled for item in self.segments) + read - self.events

    @property
    def events(self) -> int:
        """How many lines can be folded."""
        taken = (piece for pieces in self.pieces.values() for piece in pieces)
        return sum(piece.last_seq - piece.first_seq + 1 for piece in taken)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing, unreadable or edited."""
        return not self.losses and not self.edits and not self.bad

    def untold(self, begin: int) -> list[Loss | Edit]:
        """What the log does not yet tell as a fold from ``begin`` finds it: lost, or covered."""
        found: list[Loss | Edit] = [*self.losses, *self.edits]
        return [one for one in found if self._told_as(one, _END) != self.is_covered(one, begin)]

    def is_covered(self, one: Loss | Edit, begin: int) -> bool:
        """Whether a state at the place ``begin`` has what was lost: it stands behind it, and was
        not made after the loss was found."""
        if self.place(one.writer, one.last_seq) > begin:
            return False
        return self._told_as(one, begin) is not False

    def _told_as(self, one: Loss | Edit, until: int) -> bool | None:
        """Whether the log told last, up to a place, that this is covered; None where it did not."""
        told = [
            (self.place(writer, at.seq), at.is_covered)
            for writer, at in self.told
            if at.writer[:8] == one.writer[:8]
            and at.first_seq <= one.last_seq
            and one.first_seq <= at.last_seq
        ]
        return max((pair for pair in told if pair[0] <= until), default=(0, None))[1]

    def place(self, writer: str, seq: int) -> int:
        """Where a line stands in the history."""
        return self._index(writer) * _WRITER + seq

    def _index(self, writer: str) -> int:
        for at, known in enumerate(self.writers):
            if known[:8] == writer[:8]:
                return at
        return len(self.writers)

    def doubt(self, begin: int = NO_DOUBT) -> int:
        """The last place up to which a fold from ``begin`` is in doubt; NO_DOUBT if none.

        It is ``begin`` itself where the state there was made after a loss was found, and the end
        where nothing but clocks that contradict each other says how writers follow each other.
        """
        if self.by_clock:
            return max(self.place(w, p[-1].last_seq) for w, p in self.pieces.items() if p)
        found: list[Loss | Edit] = [*self.losses, *self.edits]
        open_ = [one for one in found if not self.is_covered(one, begin)]
        return max((max(self.place(x.writer, x.last_seq), begin) for x in open_), default=NO_DOUBT)

    def is_tainted(self, begin: int) -> bool:
        """Whether the state at a place was made after something before it was found lost."""
        return self.doubt(begin) == begin

    def sealed(self) -> dict[str, list[tuple[int, int]]]:
        """{writer: lines that a hash seals, first and last}."""
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for pieces in self.pieces.values():
            for piece in pieces:
                last = min(piece.last_seq, piece.item.sealed_seq)
                if last >= piece.first_seq:
                    found[piece.item.writer].append((piece.first_seq, last))
        return found

    def history(self, after: int = NO_DOUBT) -> Iterator[tuple[Event, int]]:
        """Every event behind the place ``after`` in the order of history, with its place."""
        for at, writer in enumerate(self.writers):
            begin = at * _WRITER
            wanted = [p for p in self.pieces.get(writer, []) if begin + p.last_seq > after]
            for event in taken(wanted):
                if begin + event.seq > after:
                    yield event, begin + event.seq


def survey(
    layout: Layout, *, deep: bool = True, progress: Callable[[int, int], None] | None = None
) -> Survey:
    """Read what is left of the log; changes nothing and needs no lock.

    With ``deep`` the hash chain of every archive is computed anew; else an archive is taken for
    whole where its digest is the one in its manifest. ``progress`` is told segments done, of all.
    """
    marks = stores.marks(layout)
    anchor = anchors.read(layout)
    pruned = {writer: seq for writer, (seq, _) in anchor.ends.items()} if anchor else {}
    found = segments(layout)
    proofs = {proof.segment: proof for proof in manifests.read_all(layout)}
    seals = _seals(found, marks, proofs.values())
    judged: list[Judged] = []
    chains = {writer[:8]: end for writer, (_, end) in anchor.ends.items()} if anchor else {}
    for item in found:
        chain = chains.get(item.writer[:8], NO_HASH)
        proof = proofs.get(item.name)
        one = judge(Asked(item, item is found[-1], seals, proof, chain, deep))
        chains[item.writer[:8]] = bytes.fromhex(one.left_hash)
        judged.append(one)
        if progress:
            progress(len(judged), len(found))
    return _joined(judged, marks, [*proofs.values()], pruned)


def _seals(
    found: Iterable[Segment], marks: Iterable[Mark], proofs: Iterable[manifests.Manifest]
) -> dict[tuple[str, int], set[bytes]]:
    """The hashes that are kept of the chain, by what keeps them."""
    kept: dict[tuple[str, int], set[bytes]] = defaultdict(set)

    def keep(writer: str, seq: int, text: object) -> None:
        try:
            kept[writer[:8], seq].add(bytes.fromhex(str(text)))
        except ValueError:
            return

    for mark in marks:
        keep(mark.writer, mark.seq, mark.hash)
    for proof in proofs:
        keep(proof.writer, proof.last_seq, proof.hash)
    for item in found:
        opened = item.opened or opened_inside(item.path)
        if opened:
            before = opened.get("previous_writer") or opened.writer
            seq = opened.get("previous_seq", opened.seq - 1)
            keep(str(before), seq, opened.get("previous_hash"))
    return kept


def _joined(
    judged: list[Judged],
    marks: list[Mark],
    proofs: list[manifests.Manifest],
    pruned: dict[str, int],
) -> Survey:
    ends = _ends(judged, marks, proofs)
    order = ordering.order(judged, proofs, [*ends], pruned)
    pieces: dict[str, list[Piece]] = {}
    edits = [Edit(item.name, item.writer, *part) for item in judged for part in item.edited]
    edits += [
        Edit(item.name, told.writer, told.first_seq, told.last_seq)
        for item in judged
        for told in item.told
        if told.is_edit
    ]
    for writer in order.writers:
        of_one = [item for item in judged if item.writer[:8] == writer[:8]]
        pieces[writer], changed = choose(of_one)
        edits += changed
    losses = list(_losses(order.writers, pieces, ends, pruned))
    told = [(item.writer, told) for item in judged for told in item.told]
    return Survey(judged, order.writers, pieces, losses, edits, pruned, marks, told, order.by_clock)


def _ends(
    judged: list[Judged], marks: list[Mark], proofs: list[manifests.Manifest]
) -> dict[str, list[tuple[int, str]]]:
    """{writer: how far it is known to have come, and from whom}."""
    ends: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for mark in marks:
        ends[mark.writer].append((mark.seq, mark.source))
    for proof in proofs:
        ends[proof.writer].append((proof.last_seq, f"the manifest of {proof.segment}"))
    for item in judged:
        if item.previous:
            ends[item.previous[0]].append((item.previous[1], f"{item.name} after it"))
        for told in item.told:
            ends[told.writer].append((told.last_seq, f"log.repaired in {item.name}"))
    return ends


def _losses(
    writers: list[str],
    pieces: dict[str, list[Piece]],
    ends: dict[str, list[tuple[int, str]]],
    pruned: dict[str, int],
) -> Iterator[Loss]:
    before_at: str | None = None
    for at, writer in enumerate(writers):
        last = next((seq for name, seq in pruned.items() if name[:8] == writer[:8]), 0)
        for piece in pieces[writer]:
            if piece.first_seq > last + 1:
                yield Loss(writer, last + 1, piece.first_seq - 1, before_at, piece.first_at)
            last, before_at = max(last, piece.last_seq), piece.last_at
        known = [one for name, seen in ends.items() if name[:8] == writer[:8] for one in seen]
        end = max((seq for seq, _ in known), default=0)
        if end > last:
            saw = tuple(sorted({source for seq, source in known if seq > last}))
            following = (p for w in writers[at + 1 :] for p in pieces[w])
            first = next(following, None)
            yield Loss(writer, last + 1, end, before_at, first.first_at if first else None, saw)
