"""The cache alone, as of an instant: written to a folder of its own, never over the live state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from tallybook import entry as entries
from tallybook import whole
from tallybook.book import checkpoints, opening
from tallybook.book.view import node_of
from tallybook.clock import Clock, SystemClock, from_text, to_text
from tallybook.entry import Entry
from tallybook.errors import BadInput, IncompleteInput
from tallybook.layout import FOLDER_MODE, Layout, require_book
from tallybook.log.durable import make_folder
from tallybook.log.reader import Position
from tallybook.recover import folding, keeping
from tallybook.recover.certificate import Cached, Certificate, Of, cached, certify
from tallybook.recover.exports import WRITES, Export, Overlay
from tallybook.recover.folding import Base, Folded
from tallybook.recover.reach import pruned_words, require_reach, until
from tallybook.recover.steps import Steps
from tallybook.recover.survey import Survey, survey
from tallybook.settings import load as load_settings


@dataclass(frozen=True, slots=True)
class Wish:
    """What is wanted: the cache as of an instant (RFC 3339; None: the end), begun with a
    checkpoint or an export where one is named, written into ``out`` where a folder is given."""

    as_of: str | None = None
    source: Path | None = None
    export: Export | None = None
    out: Path | None = None
    kind: str = "ndjson"


@dataclass(frozen=True, slots=True)
class CacheRebuilt:
    """What came of it; ``cache`` and ``certificate`` are paths, None without a folder.

    ``put``, ``invalidated`` and ``refused`` are changes of the live cache; None where that was not
    to be touched. Refused are those of keys that changed meanwhile.
    """

    keys: int
    jobs: int
    events_read: int
    gaps: int
    quarantined: int
    unknown_keys: int
    parity: str
    as_of: str | None
    missing_events: int
    checkpoint: str | None
    cache: str | None
    certificate: str | None
    statements: list[str]
    complete: bool
    put: int | None = None
    invalidated: int | None = None
    refused: int | None = None


def rebuild_cache(
    book: Path, wish: Wish, *, steps: Steps | None = None, clock: Clock | None = None
) -> CacheRebuilt:
    """The cache of ``book`` as the log tells it; the live state is neither asked nor changed.

    With DuckDB, which the extra ``ops`` brings, a log that is folded from its start is folded in
    bulk. Raises BadInput where the log begins after ``as_of``, IncompleteInput where it was pruned
    and no checkpoint is from before that.
    """
    layout = require_book(Path(book))
    return CacheAct(layout, wish, steps or Steps(), clock or SystemClock()).done()


def instant(option: str, text: str) -> str:
    """An instant as the log writes it. Raises BadInput where the text is none, or has no zone."""
    try:
        return to_text(from_text(text))
    except (ValueError, OverflowError):
        raise BadInput(
            f"{option} {text!r}: no time; write it with its zone, like 2026-11-29T22:00:00Z"
        ) from None


@dataclass
class CacheAct:
    """One fold of the cache alone."""

    layout: Layout
    wish: Wish
    steps: Steps
    clock: Clock
    folded: Folded = field(default_factory=Folded)
    overlay: Overlay | None = None

    def done(self) -> CacheRebuilt:
        """The whole act."""
        found, base = self.surveyed()
        in_bulk = not base and not self.wish.export and find_spec("duckdb")
        with opening.told(self.wish.out or self.layout.log):
            known = self._in_bulk(found) if in_bulk else None
            return self.told(found, *(known or self.in_memory(found, base)))

    def surveyed(self) -> tuple[Survey, Base | None]:
        """What is left of the log, and what a fold begins with."""
        found = survey(self.layout, deep=False, progress=self.steps.read)
        if not self.wish.source and not self.wish.export:
            folding.require_something(self.layout, found)
        found = until(found, self.wish.as_of)
        return found, self._base(found)

    def _base(self, found: Survey) -> Base | None:
        as_of, export = self.wish.as_of, self.wish.export
        if self.wish.source:
            return folding.named(found, self.wish.source)
        if found.is_whole and not found.pruned:
            return None
        if export and export.covers:
            require_reach(self.layout, found, export.covers)
            as_of = min(as_of or export.covers, export.covers)
        kept = [one for one in checkpoints.whole(self.layout) if not as_of or one.made_at <= as_of]
        if not kept and found.pruned and not export:
            raise IncompleteInput(pruned_words(self.layout, found, as_of))
        return folding.chosen(found, kept)

    def in_memory(self, found: Survey, base: Base | None) -> tuple[Cached, Path | None]:
        """Fold with ``fold.apply``'s own rules."""
        self.overlay = Overlay(self.wish.export) if self.wish.export else None
        self.folded = fold_cache(found, base, self.wish.as_of, self.steps, self.overlay)
        told = self.folded.tables.entries
        path = self._write(told[key] for key in sorted(told)) if self.wish.out else None
        return cached(found, self.folded), path

    def _write(self, told: Iterable[Entry]) -> Path:
        path = self._target()
        with whole.written(path) as aside:
            if self.wish.kind == "parquet":
                _write_parquet(aside, told)
            else:
                with aside.open("wb") as file:
                    file.writelines(orjson.dumps(_shown(entry)) + b"\n" for entry in told)
        return path

    def _target(self) -> Path:
        out = self.wish.out or Path()
        make_folder(out, FOLDER_MODE)
        return out / f"cache.{self.wish.kind}"

    def _in_bulk(self, found: Survey) -> tuple[Cached, Path | None] | None:
        """None where a segment holds what no writer of ours wrote, which DuckDB would not take."""
        from tallybook.recover.bulk import BulkFold, Untypical

        path = self._target() if self.wish.out else None
        with (
            suppress(Untypical),
            TemporaryDirectory(prefix=".tallybook-fold-", dir=self.wish.out) as aside,
            BulkFold(found, Path(aside), self.wish.as_of) as bulk,
        ):
            bulk.fold(self.steps.folded)
            self.folded.events_read = found.events
            self.folded.last_at = max(_ends(found), default=None)
            with ThreadPoolExecutor(1) as beside:
                written = beside.submit(bulk.write, path) if path else None
                known = bulk.cached()
                if written:
                    written.result()
            return known, path
        return None

    def told(self, found: Survey, known: Cached, path: Path | None) -> CacheRebuilt:
        """The answer, with its certificate."""
        settings = load_settings(self.layout.settings)
        made_at = self.clock.moment().wall()
        of = Of(node_of(settings).node_id, made_at, settings, self.wish.as_of)
        told = certify(of, found, self.folded, _end(found), known=known)
        paper = keeping.write_certificate(self.wish.out, told) if self.wish.out else None
        return _rebuilt(told, path, paper)


def _ends(found: Survey) -> Iterator[str]:
    return (piece.last_at for pieces in found.pieces.values() for piece in pieces)


def _end(found: Survey) -> Position:
    last = found.segments[-1] if found.segments else None
    if not last or not last.runs:
        return Position()
    return Position(last.writer, last.runs[-1].last_seq, bytes.fromhex(last.hash))


def fold_cache(
    found: Survey,
    base: Base | None,
    as_of: str | None,
    steps: Steps,
    overlay: Overlay | None = None,
) -> Folded:
    """The cache alone, folded in memory up to an instant, with an export laid over it."""
    folded = Folded()
    if base:
        begin = found.place(base.position.writer, base.position.seq)
        folded = Folded(base.tables, base, begin, ordinal=base.position.ordinal)
    for event, place in found.history(folded.begin):
        folded.events_read += 1
        folded.last_at = event.occurred_at
        if as_of and event.occurred_at > as_of:
            continue
        if overlay:
            overlay.watch(event, place)
        if event.name not in WRITES:
            continue
        folded.written[event["key"]] = place
        entry = entries.after(event)
        if entry:
            folded.tables.put_entry(entry)
        else:
            folded.tables.drop_entry(event["key"])
        if folded.events_read % folding.PROGRESS_EVENTS == 0:
            steps.folded(folded.events_read)
    if overlay:
        overlay.lay(folded)
    return folded


def _shown(entry: Entry) -> dict[str, object]:
    told = asdict(entry)
    for name in ("key", "value_json", "boot_us", "boot_id"):
        told.pop(name)
    return {"key": entry.key, "value": orjson.Fragment(entry.value_json)} | told


def _write_parquet(path: Path, told: Iterable[Entry]) -> None:
    import polars

    rows = [_shown(entry) | {"value": entry.value_json} for entry in told]
    polars.DataFrame(rows, infer_schema_length=None).write_parquet(path)


def _rebuilt(told: Certificate, path: Path | None, paper: Path | None) -> CacheRebuilt:
    return CacheRebuilt(
        **told.figures(),
        jobs=0,
        as_of=told.as_of,
        cache=str(path) if path else None,
        certificate=str(paper) if paper else None,
    )
