"""The warehouse: a DuckDB in memory over the files of one book, which it only reads."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import duckdb
import polars

from tallybook import layout
from tallybook.errors import TallybookError
from tallybook.layout import Layout
from tallybook.ops import archive as archives
from tallybook.ops import history, loading, marks, memory, metrics, statements
from tallybook.ops import past as pasts
from tallybook.ops.imports import stored
from tallybook.ops.imports.stored import Import
from tallybook.ops.imports.writing import Record
from tallybook.ops.interrupts import interruptible
from tallybook.ops.judge import Verdict, require_own_log
from tallybook.ops.marks import Mark
from tallybook.ops.past import Cut, Place
from tallybook.ops.survey import Survey, survey
from tallybook.ops.wording import counted

_TRIALS = 3
_NAMED = 20
_QUARANTINE = {"file": polars.String, "line": polars.Int64, "byte_offset": polars.Int64,
               "reason": polars.String, "text": polars.String}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ledger:
    """What became of the lines of a log: ``lines = rows + doubled + quarantined + blank``."""

    lines: int
    rows: int
    doubled: int
    quarantined: int
    blank: int


class Warehouse:
    """The models of one book as SQL views, and what could not be read of it.

    It holds no lock and writes nothing into the book. Use it as a context manager, or close it.
    ``archive`` is where compacted segments lie, else ``archive`` in the ops folder of the node.
    """

    _by_node = False  # whether a key of the cache is one of each node

    def __init__(self, book: Path, out: Path | None = None, archive: Path | None = None) -> None:
        self.book = book
        self._present: Warehouse | None = None
        self._at = place = self._place(book)
        try:
            with interruptible():
                self._open(place, out, archive)
        except OSError as error:
            raise TallybookError(f"cannot read {error.filename}: {error.strerror}") from error

    def _open(self, place: Layout, out: Path | None, archive: Path | None) -> None:
        """Read the book, once more where a segment was pruned meanwhile."""
        for trial in range(_TRIALS):
            try:
                self._read(place, self._survey(out, archive))
            except FileNotFoundError:
                if trial + 1 == _TRIALS:
                    raise
            else:
                break

    def _read(self, place: Layout, found: Survey) -> None:
        self.node_id, self.out = found.node_id, found.out
        self._imported = self._imports()
        self._spill = memory.spill_folder(found.out, found.text_bytes)
        self._connection = memory.connect(Path(self._spill.name) if self._spill else None)
        try:
            self._marks, self._unasked = self._marks_of()
            marks.keep(self._connection, self._marks)
            self._load(place, found)
        except BaseException:
            self.close()
            raise

    def _load(self, place: Layout, found: Survey) -> None:
        history.name(self._connection, found.openings)
        verdicts = loading.load(self._connection, place, found.paths, found.openings)
        self._entries = [*found.archived, *found.moved]
        loading.move(self._connection, found)
        self._archive_files = archives.attach(self._connection, found.folder, found.archived)
        self._attach()
        self._doubled = history.arrange(self._connection)
        history.note_pruned(self._connection, self._pruned_of())
        self._make_models()
        self._bad_metrics = metrics.load(self._connection, self._days())
        self._judge(place, verdicts)

    def _make_models(self) -> None:
        self._set_variables()
        model = statements.model(self._stored())
        self._connection.execute("create macro stored() as table " + model)
        for model in ("events", *statements.FOLDED):
            self._connection.execute(f"create view {model} as " + statements.model(model))

    def _set_variables(self) -> None:
        self._connection.execute("set variable archive_files = ?", [self._archive_files])
        self._connection.execute("set variable by_node = ?", [self._by_node])
        self._connection.execute("set variable import_files = ?", [[f for *_, f in self._imported]])

    def _judge(self, place: Layout, verdicts: Sequence[Verdict]) -> None:
        last = self._last_segments()
        torn = [(verdict, verdict.torn_tail) for verdict in verdicts if verdict.torn_tail]
        # A segment with nothing but a torn line was being opened: nothing follows it either.
        self._torn_tails = [
            tail for verdict, tail in torn if not verdict.lines or tail.file in last
        ]
        torn_inside = [tail for _, tail in torn if tail not in self._torn_tails]
        kept = [bad for entry in self._entries for bad in entry.quarantine]
        self._bad_lines = kept + [bad for one in verdicts for bad in one.bad] + torn_inside
        self._unreadable = stored.unreadable(place) if self.imported else []
        self.ledger = self._ledger(sum(verdict.blank for verdict in verdicts))
        if not self.ledger.rows:
            self._require_events()

    # what a fleet has other than one book

    def _stored(self) -> str:
        """The model of all rows."""
        name = "stored" if self._archive_files else "stored_lines"
        return "stored_imports" if self._imported else name

    def _cut(self, instant: Place) -> Cut:
        return pasts.find(self._connection, instant)

    def _place(self, book: Path) -> Layout:
        return layout.require_readable_book(book)

    def _survey(self, out: Path | None, folder: Path | None) -> Survey:
        return survey(self._at, out, folder)

    def _imports(self) -> list[Import]:
        found = stored.read(self._at)
        return [(found.node_id, found, str(self._at.log / found.events_file))] if found else []

    def _attach(self) -> None:
        stored.attach(self._connection, self._imported, whole=True)

    def _marks_of(self) -> tuple[list[Mark], list[str]]:
        return marks.read(self._at)

    def _pruned_of(self) -> Mapping[str, int]:
        return layout.pruned_ends(self._at)

    def _days(self) -> list[Path]:
        return sorted(self._at.metrics.glob("*.csv"))

    def _last_segments(self) -> set[str]:
        return {segment for (segment,) in self._rows(statements.query("last_segment"))}

    def _require_events(self) -> None:
        require_own_log(self._at, self._bad_lines)

    @property
    def imported(self) -> Record | None:
        """What an imported book says of itself; None for the book of a queue, and for a fleet."""
        return self._imported[0][1] if self._imported else None

    def _ledger(self, blank: int) -> Ledger:
        if self.imported:
            told, bad = self.imported.counts["rows"], len(self._unreadable)
            return Ledger(told, told - bad, 0, bad, 0)
        rows = self._rows("select count(*) from stored()")[0][0]
        doubled = self._doubled + sum(entry.doubled for entry in self._entries)
        blank += sum(entry.blank for entry in self._entries)
        quarantined = len(self._bad_lines)
        return Ledger(rows + doubled + quarantined + blank, rows, doubled, quarantined, blank)

    def as_of(self, instant: Place) -> Self:
        """The same warehouse as of ``instant``: its models over the events up to there.

        ``instant`` is a time (without an offset it is UTC), a position, or ``writer:seq``. What
        ``quarantine``, ``gaps`` and ``notes`` say is of the whole log. Close it before this one.
        """
        past = copy(self)
        with interruptible(self._connection):
            cut = self._cut(instant)
            past._connection = self._connection.cursor()
            past._spill = past._present = None
            past._set_variables()
            pasts.enter(past._connection, cut)
        return past

    def apart(self) -> Self:
        """The same warehouse with temporary tables of its own. Close it before this one."""
        beside = copy(self)
        beside._connection = self._connection.cursor()
        beside._spill = beside._present = None
        beside._set_variables()
        beside._connection.execute("set TimeZone = 'UTC'")
        return beside

    def turned_to(self, instant: Place) -> Self:
        """As ``as_of``, where this one is needed no more: it is closed with the other."""
        past = self.as_of(instant)
        past._present = self
        return past

    def _rows(self, query: str, params: Any = None) -> list[tuple[Any, ...]]:
        with interruptible(self._connection):
            return self._connection.execute(query, params or []).fetchall()

    # what a notebook asks

    def sql(self, query: str, params: Any = None) -> duckdb.DuckDBPyRelation:
        """The relation of a query over the models; values go in ``params`` as ? or $name.

        ``.pl()`` gives Polars, ``.arrow()`` Arrow, ``.fetchall()`` tuples.
        """
        with interruptible(self._connection):
            return self._connection.sql(query, params=params)

    def frame(self, name: str, params: Any = None) -> polars.DataFrame:
        """The Polars frame of the statement ``queries/<name>.sql``."""
        with interruptible(self._connection):
            frame: polars.DataFrame = self.sql(statements.query(name), params).pl()
        return frame

    @property
    def quarantine(self) -> polars.DataFrame:
        """One row a line that is in no model: file, line, byte_offset, reason, text."""
        bad = [asdict(line) for line in (*self._bad_lines, *self._bad_metrics)]
        return polars.DataFrame(bad + self._unreadable, schema=_QUARANTINE)

    @property
    def gaps(self) -> polars.DataFrame:
        """One row a hole: writer, first_missing_seq, last_missing_seq."""
        return self.frame("gaps")

    @property
    def notes(self) -> list[str]:
        """What makes every answer incomplete, a sentence each; empty for a whole log.

        Of a file with many bad lines the first twenty are named; ``quarantine`` has them all.
        """
        return [*self._bad_lines_told(), *stored.notes(self._unreadable), *self.losses]

    def _bad_lines_told(self) -> Iterator[str]:
        counts = Counter[str]()
        for line in self._bad_lines:
            counts[line.file] += 1
            if counts[line.file] <= _NAMED:
                place = f"{line.file} line {line.line} (byte {line.byte_offset})"
                yield f"{place} cannot be read: {line.reason}"
        for file, count in counts.items():
            if count > _NAMED:
                yield f"{file}: {counted(count - _NAMED, 'more line')} cannot be read"

    @property
    def losses(self) -> list[str]:
        """A sentence a hole of the log, with who saw what is lost."""
        return [f"writer {writer[:8]} has no events {first} to {last}" + self._by(writer, last)
                for writer, first, last in self.gaps.iter_rows()]  # fmt: skip

    def _by(self, writer: str, last: int) -> str:
        """Who saw the last event of a hole, as the end of a sentence."""
        sources = [mark.source for mark in self._marks if (mark.writer, mark.seq) == (writer, last)]
        return f" any more; {', '.join(sources)} saw them" if sources else ""

    @property
    def warnings(self) -> list[str]:
        """What a reader should know and what does not make an answer incomplete."""
        told = [f"{line.file} ends in a torn line at byte {line.byte_offset}; the next append "
                "cuts it" for line in self._torn_tails]  # fmt: skip
        told += [f"{line.file} line {line.line}: {line.reason}" for line in self._bad_metrics]
        told += [f"the log was pruned: events {first} to {last} of writer {name} are not in it"
                 for name, first, last in self._rows(statements.query("pruned_away"))]  # fmt: skip
        if self._doubled:
            told.append(f"{counted(self._doubled, 'doubled line')} counted once")
        told += stored.warnings(self.imported) if self.imported else []
        return told + self._unasked

    @property
    def silent(self) -> Mapping[str, str]:
        """What an imported log cannot say, each with its sentence: cache, leases, workers, …"""
        return stored.silent(self.imported) if self.imported else {}

    def metrics_gap(self) -> polars.DataFrame:
        """One row a worker and count that the metrics and the log tell differently."""
        return self.frame("metrics_gap")

    def close(self) -> None:
        """Free the memory; relations made from this warehouse end with it."""
        self._connection.close()
        if self._spill:
            self._spill.cleanup()
        if self._present:
            self._present.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
