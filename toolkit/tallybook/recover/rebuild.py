"""Rebuild the queue and the cache from the log alone, with a certificate of what is known.

survey and fold what is left, with no lock, while workers go on
→ lock → fold what came meanwhile → build state.db aside → check it → set the old one aside
→ swap → unlock → tell the log → take jobs from holders that are gone → write the certificate
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tallybook.book import Book, checkpoints, opening
from tallybook.book import aside as asides
from tallybook.book.store import Store
from tallybook.book.view import node_of
from tallybook.clock import Clock, SystemClock
from tallybook.errors import TallybookError
from tallybook.event import Event
from tallybook.ids import parity
from tallybook.job import Status
from tallybook.layout import Layout, require_book
from tallybook.log.lock import LogLock
from tallybook.log.reader import Position
from tallybook.queue.contract import Selection
from tallybook.recover import folding, keeping
from tallybook.recover.certificate import Certificate, Of, certify
from tallybook.recover.folding import Folded
from tallybook.recover.pieces import Edit
from tallybook.recover.steps import Steps
from tallybook.recover.survey import Loss, Survey, survey
from tallybook.recover.survivors import survivors
from tallybook.settings import Settings
from tallybook.settings import load as load_settings
from tallybook.worker import sign

_ALL = 1 << 62


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What came back. ``unknown_keys`` have no write after the last damage; ``holes`` names the
    holes; ``passed_over`` are events of a damaged log that no longer fit the ones before.

    ``checkpoint`` is what the fold began with where the start of the log was pruned or is damaged;
    ``payloads_lost`` are jobs that can still run, but whose payload the log was not to keep;
    ``rescued`` are jobs taken from holders that are gone. ``certificate`` and ``set_aside`` are
    paths; None of a dry run, and where there was no old state. ``statements`` are those of the
    certificate: what a person must know.
    """

    keys: int
    jobs: int
    events_read: int
    gaps: int
    quarantined: int
    unknown_keys: int
    parity: str
    holes: list[Loss]
    edits: list[Edit]
    missing_events: int
    unknown_jobs: int
    passed_over: int
    checkpoint: str | None
    payloads_lost: int
    rescued: int
    certificate: str | None
    set_aside: str | None
    dry_run: bool
    statements: list[str]
    complete: bool


def rebuild(
    book: Path,
    *,
    source: Path | None = None,
    bare: bool = False,
    dry_run: bool = False,
    out: Path | None = None,
    steps: Steps | None = None,
    clock: Clock | None = None,
) -> Rebuilt:
    """Fold the log of ``book`` into a new state.db and swap it in; returns what came back.

    Deterministic and idempotent, for any order of the segments and with doubled lines; workers may
    go on. The old state.db is set aside, and asked for nothing but how far it was. Where the log
    has holes, what is left is folded, a new writer goes on and the log says which lines are lost.
    ``source`` is a checkpoint to begin with; a pruned log without any is refused unless it may be
    folded ``bare``. With ``dry_run`` nothing is changed; the certificate
    goes into ``out``, if given. Raises BadInput where no book is, or nothing to rebuild from.
    """
    layout = require_book(Path(book))
    act = _Rebuild(layout, source, out, steps or Steps(), clock or SystemClock(), bare)
    return act.looked() if dry_run else act.done()


def look(
    book: Path,
    *,
    source: Path | None = None,
    steps: Steps | None = None,
    clock: Clock | None = None,
) -> tuple[Certificate, Folded]:
    """What a rebuild would bring, and its certificate; nothing is changed or written."""
    layout = require_book(Path(book))
    act = _Rebuild(layout, source, None, steps or Steps(), clock or SystemClock())
    return act.seen()


@dataclass
class _Rebuild:
    layout: Layout
    source: Path | None
    out: Path | None
    steps: Steps
    clock: Clock
    bare: bool = False

    def seen(self) -> tuple[Certificate, Folded]:
        """What is left, folded, and what is known of it."""
        found, folded, end, settings = self._folded()
        return self._certificate(found, folded, end, settings), folded

    def looked(self) -> Rebuilt:
        """What a rebuild would bring; nothing is changed."""
        certificate, _ = self.seen()
        path = keeping.write_certificate(self.out, certificate) if self.out else None
        return _rebuilt(certificate, path, None, 0, dry_run=True)

    def done(self) -> Rebuilt:
        """The whole act."""
        found, folded, end, settings = self._folded()
        lock = LogLock(self.layout.log, settings.log.lock_wait_s)
        try:
            with lock, opening.told(self.layout.state):
                end = folding.follow(self.layout, found, folded, end)
                certificate = self._certificate(found, folded, end, settings)
                kept = self._swap(found, folded, end, certificate)
        finally:
            lock.close()
        rescued = self._go_on(found, folded, certificate)
        path = keeping.write_certificate(kept, certificate)
        if self.out:
            path = keeping.write_certificate(self.out, certificate)
        asides.drop_old(self.layout)
        aside = str(kept) if (kept / self.layout.state.name).exists() else None
        return _rebuilt(certificate, path, aside, rescued, dry_run=False)

    def _folded(self) -> tuple[Survey, Folded, Position, Settings]:
        settings = load_settings(self.layout.settings)
        found = survey(self.layout, progress=self.steps.read)
        if not self.source:
            folding.require_something(self.layout, found)
        folded = folding.fold(self.layout, found, self.steps.folded, self.source, bare=self.bare)
        return found, folded, folding.end_of(self.layout, found, folded), settings

    def _certificate(
        self, found: Survey, folded: Folded, end: Position, settings: Settings
    ) -> Certificate:
        of = Of(node_of(settings).node_id, self.clock.moment().wall(), settings)
        found_caches = list(survivors(self.layout, folded.tables.entries))
        return certify(of, found, folded, end, found_caches)

    def _swap(self, found: Survey, folded: Folded, end: Position, certificate: Certificate) -> Path:
        """Put the new state in place, under the lock; returns where the old one was set aside."""
        if not found.is_whole or folded.base or folded.is_bare:
            self.layout.writer.unlink(missing_ok=True)

        def check(store: Store) -> None:
            _require_same(store, folded, end, certificate)

        kept = asides.begin_keeping(self.layout, certificate.made_at)
        try:
            store = asides.write_anew(self.layout.state, folded.tables, end, check=check, keep=kept)
        except BaseException:
            keeping.forget(kept)
            raise
        store.connection.close()
        keeping.set_aside(self.layout.cache_file, kept)
        return kept

    def _go_on(self, found: Survey, folded: Folded, certificate: Certificate) -> int:
        """Tell the log what was found, and take the jobs of holders that are gone."""
        with Book.open(self.layout.root, clock=self.clock) as book:
            for one in found.untold(folded.begin):
                book.record(_repaired(one, found.is_covered(one, folded.begin)))
            rescued = _rescue(book)
            book.record(_told(certificate))
        if not found.is_whole or folded.base or folded.is_bare:
            checkpoints.make(self.layout, self.clock.moment().wall())
        return rescued


def _require_same(store: Store, folded: Folded, end: Position, certificate: Certificate) -> None:
    """Raises TallybookError where the file that was built is not what was folded."""
    (sound,) = store.connection.execute("pragma quick_check(1)").fetchone()
    jobs = sum(1 for _ in store.queue.select(Selection(), -1))
    digest = parity((entry.key, entry.value) for entry in store.cache.scan())
    found = (sound, jobs, digest, store.position())
    if found != ("ok", len(folded.tables.jobs), certificate.parity, end):
        raise TallybookError(
            f"the new state.db is not what was folded ({sound}, {jobs} jobs, parity {digest}); "
            "nothing was swapped: look at the disk and run it again"
        )


def _repaired(one: Loss | Edit, is_covered: bool) -> Event:
    reason = "edited" if isinstance(one, Edit) else "damaged"
    covered = "covered" if isinstance(one, Loss) else "edited_covered"
    lost = {"first_lost_seq": one.first_seq, "last_lost_seq": one.last_seq}
    told = {"reason": covered if is_covered else reason, "writer": one.writer}
    return Event("log.repaired", told | lost)


def _rescue(book: Book) -> int:
    """Take the jobs of workers that are not there any more; those of living ones stay theirs."""
    events = sign.bury_the_dead(book)
    held = {job.locked_by for job in book.jobs(status=Status.LEASED, limit=_ALL)}
    gone = (worker for worker in held if worker and not sign.is_alive(book, worker))
    for worker in sorted(gone):
        events += book.rescue_of(worker)
    return sum(event.name == "job.lease_expired" for event in events)


def _told(certificate: Certificate) -> Event:
    whole = certificate.complete
    reason = "rebuilt from the log" if whole else "rebuilt from a log with holes"
    figures = {
        "keys": certificate.keys.proven + certificate.keys.unknown,
        "events_read": certificate.events_read,
        "parity": certificate.parity,
    }
    return Event("cache.rebuilt", {"reason": reason} | figures)


def _rebuilt(
    certificate: Certificate, path: Path | None, aside: str | None, rescued: int, *, dry_run: bool
) -> Rebuilt:
    return Rebuilt(
        **certificate.figures(),
        jobs=sum(certificate.jobs.values()),
        holes=certificate.losses,
        edits=certificate.edits,
        unknown_jobs=len(certificate.unknown_jobs),
        passed_over=certificate.passed_over,
        payloads_lost=len(certificate.payloads_lost),
        rescued=rescued,
        certificate=str(path) if path else None,
        set_aside=aside,
        dry_run=dry_run,
    )
