"""Folding what is left of a log: from its start, or from a checkpoint where that knows more."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tallybook.book import aside as asides
from tallybook.book import checkpoints
from tallybook.book.checkpoints import Checkpoint
from tallybook.book.folding import require_start
from tallybook.errors import BadInput, FoldRefused
from tallybook.event import Event
from tallybook.fold import MemoryTables, apply
from tallybook.job import Job, Status
from tallybook.layout import Layout
from tallybook.log.reader import Damage, Position, history
from tallybook.recover import columnar
from tallybook.recover.survey import NO_DOUBT, Survey

Progress = Callable[[int], None]
PROGRESS_EVENTS = 1000
_UNSETTLED = (Status.PENDING, Status.LEASED, Status.DEAD)


@dataclass(frozen=True, slots=True)
class Base:
    """What a fold begins with: a checkpoint, by its file and its position in the log."""

    name: str
    position: Position
    tables: MemoryTables


@dataclass
class Folded:
    """A log folded as far as it goes.

    ``written`` and ``touched`` say by key and by job where the last event of each stands; what
    only the base tells stands at ``begin``. ``passed_over`` are events of a damaged log that no
    longer fit. ``export`` names what was laid over it; with ``is_bare`` the start of the log is
    lost and nothing stood in for it.
    """

    tables: MemoryTables = field(default_factory=MemoryTables)
    base: Base | None = None
    begin: int = NO_DOUBT
    written: dict[str, int] = field(default_factory=dict)
    touched: dict[str, int] = field(default_factory=dict)
    last_at: str | None = None
    ordinal: int = 0
    events_read: int = 0
    passed_over: int = 0
    export: str | None = None
    is_bare: bool = False

    @property
    def begun_with(self) -> str | None:
        """The name of the checkpoint or the export that the fold began with."""
        return self.export or (self.base.name if self.base else None)

    def take(self, event: Event, place: int, *, strict: bool) -> None:
        """Apply an event. One that does not fit raises where ``strict``, else is passed over."""
        self.ordinal += 1
        self.events_read += 1
        self.last_at = event.occurred_at
        try:
            apply(self.tables, event, self.ordinal)
        except FoldRefused:
            if strict:
                raise
            self.passed_over += 1
            return
        if event.name in ("cache.put", "cache.invalidated"):
            self.written[event["key"]] = place
        elif event.get("job_id"):
            self.touched[event["job_id"]] = place

    def unknown_keys(self, doubt: int) -> list[str]:
        """The keys with no full write behind ``doubt``: their value may be an old one."""
        keys = self.tables.entries if doubt != NO_DOUBT else {}
        return sorted(key for key in keys if self.written.get(key, self.begin) <= doubt)

    def unknown_jobs(self, doubt: int) -> list[str]:
        """The jobs that are not done, of which no event stands behind ``doubt``."""
        return [
            job.job_id
            for job in self.unsettled()
            if self.touched.get(job.job_id, self.begin) <= doubt
        ]

    def unsettled(self) -> list[Job]:
        """The jobs that still run, may run, or wait for a person."""
        return [job for job in self.tables.jobs.values() if job.status in _UNSETTLED]


def fold(
    layout: Layout,
    survey: Survey,
    progress: Progress,
    source: Path | None = None,
    *,
    bare: bool = False,
) -> Folded:
    """All that is known, folded. A whole log is folded from its start; one that was pruned or is
    damaged from the newest checkpoint, also from one that saw lines which the log has lost; with
    ``source`` from that one. Raises LogDamaged where a pruned log has no checkpoint, unless it may
    be folded ``bare``."""
    base = named(survey, source) if source else _base(layout, survey, bare=bare)
    folded = Folded(is_bare=bool(survey.pruned) and base is None)
    if base:
        begin = survey.place(base.position.writer, base.position.seq)
        folded = Folded(base.tables, base, begin, ordinal=base.position.ordinal)
    strict = survey.doubt(folded.begin) == NO_DOUBT and not survey.bad and not folded.is_bare
    for event, place in survey.history(folded.begin):
        folded.take(event, place, strict=strict)
        if folded.events_read % PROGRESS_EVENTS == 0:
            progress(folded.events_read)
    progress(folded.events_read)
    return folded


def _base(layout: Layout, survey: Survey, *, bare: bool) -> Base | None:
    """The newest checkpoint that was not made after a loss; where the start of the log is gone,
    the newest of all."""
    if survey.is_whole and not survey.pruned:
        return None
    base = chosen(survey, list(checkpoints.whole(layout)))
    if base is None and not bare:
        require_start(layout)
    return base


def chosen(survey: Survey, found: Sequence[Checkpoint]) -> Base | None:
    """The first of ``found`` that was not made after a loss; of a pruned log else the first."""
    for one in found:
        if not survey.is_tainted(survey.place(one.position.writer, one.position.seq)):
            return read_base(one.path)
    return read_base(found[0].path) if survey.pruned and found else None


def named(survey: Survey, source: Path) -> Base:
    """The checkpoint that a person named. Raises BadInput where it is of another log."""
    base = read_base(source)
    known = any(writer[:8] == base.position.writer[:8] for writer in survey.writers)
    if survey.segments and not known:
        raise BadInput(
            f"{source} is of another log: nothing here is of its writer "
            f"{base.position.writer[:8]}; choose a checkpoint of this book"
        )
    return base


def read_base(path: Path) -> Base:
    """The state in a checkpoint, or in a state.db that was set aside. Raises BadInput where the
    file is none, or of a newer version. A folder is one written as Parquet."""
    if columnar.is_one(path):
        with columnar.as_file(path) as file:
            return replace(read_base(file), name=path.name)
    if not path.is_file():
        raise BadInput(f"cannot read {path}: there is no such file")
    position, tables = checkpoints.position_of(path), asides.kept_tables(path)
    if not position or tables is None:
        raise BadInput(f"{path} is no checkpoint that this version can read, or is damaged")
    return Base(path.name, position, tables)


def end_of(layout: Layout, survey: Survey, folded: Folded) -> Position:
    """The place in the files at which a state that has all of ``survey`` stands.

    Of a damaged log it is the end of what is left, with the chain over just that, so that the
    next writer is anchored there.
    """
    end = _last_line(survey) if survey.is_whole and not survey.doubled else None
    if end is None:
        last = deque(history(layout, None, Damage()), maxlen=1)
        end = last[0][1] if last else Position()
    if not end.writer and folded.base:
        end = folded.base.position._replace(segment="", offset=0)
    return end._replace(ordinal=folded.ordinal)


def _last_line(survey: Survey) -> Position | None:
    if not survey.segments or not survey.segments[-1].runs:
        return None
    item = survey.segments[-1]
    return Position(
        writer=item.writer,
        seq=item.runs[-1].last_seq,
        hash=bytes.fromhex(item.hash),
        segment=item.name,
        offset=item.text_bytes,
        boot_id=item.boot_id,
    )


def follow(layout: Layout, survey: Survey, folded: Folded, end: Position) -> Position:
    """Fold what living workers appended since; under the lock, so that nothing comes any more."""
    added: Iterable[tuple[Event, Position]] = history(layout, end) if end.segment else ()
    strict = survey.is_whole and not folded.is_bare
    for event, at in added:
        folded.take(event, survey.place(at.writer, at.seq), strict=strict)
        end = at
    return end._replace(ordinal=folded.ordinal)


def require_something(layout: Layout, survey: Survey) -> None:
    """Raises BadInput where there is neither a line nor anything that saw one."""
    if not survey.segments and not survey.marks:
        raise BadInput(
            f"{layout.log} holds no segment, and nothing in the book ever saw one: there is "
            "nothing to rebuild from; put segments back from a backup, or name a checkpoint "
            "with --from"
        )
