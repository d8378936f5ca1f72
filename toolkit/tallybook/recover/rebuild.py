"""Rebuild the queue and the cache from the log alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tallybook.book import Book, checkpoints
from tallybook.book import aside as asides
from tallybook.book import store as stores
from tallybook.book.checkpoints import Checkpoint
from tallybook.book.folding import require_start
from tallybook.errors import FoldRefused, TallybookError
from tallybook.event import Event
from tallybook.fold import MemoryTables, apply
from tallybook.ids import parity
from tallybook.job import Status
from tallybook.layout import Layout, require_book
from tallybook.log import anchor as anchors
from tallybook.log.lock import LogLock
from tallybook.log.reader import Damage, Hole, Position, history
from tallybook.settings import load as load_settings

_PROGRESS_EVENTS = 1000


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What came back. ``unknown_keys`` have no write after the last hole; ``holes`` names the
    holes; ``passed_over`` are events of a damaged log that no longer fit the ones before.

    ``checkpoint`` is what the fold began with where the start of the log was pruned or is damaged;
    ``payloads_lost`` are jobs that can still run, but whose payload the log was not to keep.
    """

    keys: int
    jobs: int
    events_read: int
    gaps: int
    quarantined: int
    unknown_keys: int
    parity: str
    holes: list[Hole]
    passed_over: int
    checkpoint: str | None
    payloads_lost: int

    @property
    def complete(self) -> bool:
        """Whether the log had all that it should have."""
        return not self.gaps and not self.quarantined


@dataclass
class _Fold:
    """A log folded as far as it goes."""

    tables: MemoryTables = field(default_factory=MemoryTables)
    position: Position = field(default_factory=Position)
    damage: Damage = field(default_factory=Damage)
    written: dict[str, int] = field(default_factory=dict)
    told: set[Hole] = field(default_factory=set)
    passed_over: int = 0
    events_read: int = 0
    checkpoint: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether nothing that the fold read had a hole or a bad line."""
        return not self.damage.holes and not self.damage.quarantined


def rebuild(book: Path, *, progress: Callable[[int], None] | None = None) -> Rebuilt:
    """Fold the log of ``book`` into a new state.db and swap it in; returns what came back.

    Deterministic and idempotent; the old state.db is asked for nothing but how far it was. Where
    the log has holes, what is left is folded, a new writer goes on and the log says which lines
    are lost. ``progress`` is told how many events are folded. Raises BadInput where no book is.
    """
    layout = require_book(book)
    lock = LogLock(layout.log, load_settings(layout.settings).log.lock_wait_s)
    try:
        with lock, stores.told(layout.state):
            folded = _fold(layout, progress or (lambda _: None))
            lost_end = _lost_end(layout, folded.position)
            untold = [hole for hole in folded.damage.holes if hole not in folded.told]
            if untold or lost_end:
                layout.writer.unlink(missing_ok=True)
            store = asides.write_anew(layout.state, folded.tables, folded.position)
            store.connection.close()
            layout.cache_file.unlink(missing_ok=True)
    finally:
        lock.close()
    rebuilt = _rebuilt(folded, lost_end)
    with Book.open(book) as opened:
        for hole in untold:
            opened.record(_repaired(hole))
        opened.record(_told(rebuilt))
    return rebuilt


def _fold(layout: Layout, progress: Callable[[int], None]) -> _Fold:
    """The log folded from its start; where that was pruned or is damaged, the state comes from the
    newest good checkpoint and the log after it."""
    pruned = anchors.read(layout) is not None
    from_start = None if pruned else _fold_on(layout, _Fold(), progress)
    if from_start and from_start.is_whole:
        return from_start
    for checkpoint in checkpoints.good(layout):
        after = _fold_on(layout, _begun(checkpoint), progress)
        if from_start is None:
            return after
        if after.is_whole and not after.passed_over:
            after.damage, after.events_read = from_start.damage, from_start.events_read
            after.damage.last_hole = 0
            after.told = from_start.told
            return after
    if from_start is None:
        require_start(layout)
    return from_start or _Fold()


def _begun(checkpoint: Checkpoint) -> _Fold:
    """A fold that begins with the state of a checkpoint."""
    tables = asides.kept_tables(checkpoint.path)
    if tables is None:
        raise TallybookError(f"{checkpoint.path} was removed while it was read; run it again")
    written = dict.fromkeys(tables.entries, checkpoint.position.ordinal)
    name = checkpoint.path.name
    return _Fold(tables, checkpoint.position, written=written, checkpoint=name)


def _fold_on(layout: Layout, folded: _Fold, progress: Callable[[int], None]) -> _Fold:
    """Apply what the log has after the position of ``folded``, or from its start on."""
    after = folded.position if folded.checkpoint else None
    for event, position in history(layout, after, folded.damage):
        folded.position = position
        folded.events_read += 1
        _apply(folded, event)
        if folded.events_read % _PROGRESS_EVENTS == 0:
            progress(folded.events_read)
    return folded


def _apply(folded: _Fold, event: Event) -> None:
    """Apply an event; in a damaged log one that does not fit is counted and passed over."""
    try:
        apply(folded.tables, event, folded.position.ordinal)
    except FoldRefused:
        if folded.is_whole:
            raise
        folded.passed_over += 1
    if event.name in ("cache.put", "cache.invalidated"):
        folded.written[event["key"]] = folded.position.ordinal
    if event.name == "log.repaired" and event.get("first_lost_seq"):
        _note_told(folded, Hole(event["writer"], event["first_lost_seq"], event["last_lost_seq"]))


def _note_told(folded: _Fold, hole: Hole) -> None:
    """A hole that the log itself tells of; also one at a lost end, which no jump of seq shows."""
    folded.told.add(hole)
    if hole not in folded.damage.holes:
        folded.damage.holes.append(hole)
        folded.damage.last_hole = max(folded.damage.last_hole, folded.position.ordinal)


def _lost_end(layout: Layout, end: Position) -> list[Hole]:
    """What state.db, latest.json or a checkpoint saw after the last line that is left."""
    seen = [end.seq, *(m.seq for m in stores.marks(layout) if m.writer == end.writer)]
    return [Hole(end.writer, end.seq + 1, max(seen))] if max(seen) > end.seq else []


def _repaired(hole: Hole) -> Event:
    lost = {"first_lost_seq": hole.first_seq, "last_lost_seq": hole.last_seq}
    return Event("log.repaired", {"reason": "damaged", "writer": hole.writer} | lost)


def _rebuilt(folded: _Fold, lost_end: list[Hole]) -> Rebuilt:
    holes = [*folded.damage.holes, *lost_end]
    last_hole = folded.position.ordinal if lost_end else folded.damage.last_hole
    entries = folded.tables.entries
    unknown = [key for key in entries if holes and folded.written[key] <= last_hole]
    return Rebuilt(
        keys=len(entries),
        jobs=len(folded.tables.jobs),
        events_read=folded.events_read,
        gaps=len(holes),
        quarantined=folded.damage.quarantined,
        unknown_keys=len(unknown),
        parity=parity((key, entry.value) for key, entry in entries.items()),
        holes=holes,
        passed_over=folded.passed_over,
        checkpoint=folded.checkpoint,
        payloads_lost=sum(
            job.payload_is_lost and job.status in (Status.PENDING, Status.LEASED, Status.DEAD)
            for job in folded.tables.jobs.values()
        ),
    )


def _told(rebuilt: Rebuilt) -> Event:
    reason = "rebuilt from the log" if rebuilt.complete else "rebuilt from a log with holes"
    figures = {"keys": rebuilt.keys, "events_read": rebuilt.events_read, "parity": rebuilt.parity}
    return Event("cache.rebuilt", {"reason": reason} | figures)
