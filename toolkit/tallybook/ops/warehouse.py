"""The warehouse: a DuckDB in memory over the files of one book, which it only reads."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb
import polars

from tallybook import layout
from tallybook.errors import TallybookError
from tallybook.layout import Layout
from tallybook.ops import history, loading, marks, metrics, statements
from tallybook.ops.imports import stored
from tallybook.ops.interrupts import interruptible
from tallybook.ops.judge import Verdict
from tallybook.ops.wording import counted

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
    """

    def __init__(self, book: Path, out: Path | None = None) -> None:
        place = layout.require_readable_book(book)
        self.book = book
        self._connection = _connect()
        try:
            with interruptible():
                self._load(place)
        except OSError as error:
            raise TallybookError(f"cannot read {error.filename}: {error.strerror}") from error
        self.out = layout.out_dir(out, self.node_id)

    def _load(self, place: Layout) -> None:
        self._marks, self._unasked = marks.read(place)
        marks.keep(self._connection, self._marks)
        verdicts = loading.load(self._connection, place.segments())
        self._doubled = history.arrange(self._connection)
        history.note_pruned(self._connection, place)
        self.imported = stored.read(place)
        for model in statements.MODELS[1:]:
            if model == "events" and self.imported:
                self._connection.execute("create view logged_events as " + statements.model(model))
                file = place.log / self.imported.events_file
                stored.view(self._connection, model, file, self.imported)
            else:
                self._connection.execute(f"create view {model} as " + statements.model(model))
        days = sorted(place.metrics.glob("*.csv"))
        self._bad_metrics = metrics.load(self._connection, days)
        self._judge(verdicts, place)
        self.node_id = self._node_id(place)

    def _judge(self, verdicts: Sequence[Verdict], place: Layout) -> None:
        last = self._rows(statements.query("last_segment"))
        torn = [(verdict, verdict.torn_tail) for verdict in verdicts if verdict.torn_tail]
        # A segment with nothing but a torn line was being opened: nothing follows it either.
        self._torn_tails = [
            tail for verdict, tail in torn if not verdict.lines or (tail.file,) in last
        ]
        torn_inside = [tail for _, tail in torn if tail not in self._torn_tails]
        self._bad_lines = [bad for verdict in verdicts for bad in verdict.bad] + torn_inside
        rows = self._rows("select count(*) from lines")[0][0]
        quarantined, blank = len(self._bad_lines), sum(verdict.blank for verdict in verdicts)
        self._unreadable = stored.unreadable(place) if self.imported else []
        if self.imported:
            quarantined = len(self._unreadable)
            rows = self.imported.counts["rows"] - quarantined
        lines = rows + self._doubled + quarantined + blank
        self.ledger = Ledger(lines, rows, self._doubled, quarantined, blank)

    def _node_id(self, place: Layout) -> str:
        if self.imported:
            return self.imported.node_id
        named = self._rows(statements.query("node_id"))
        return str(named[0][0]) if named else place.root.resolve().name

    def _rows(self, query: str, params: Any = None) -> list[tuple[Any, ...]]:
        with interruptible():
            return self._connection.execute(query, params or []).fetchall()

    # what a notebook asks

    def sql(self, query: str, params: Any = None) -> duckdb.DuckDBPyRelation:
        """The relation of a query over the models; values go in ``params`` as ? or $name.

        ``.pl()`` gives Polars, ``.arrow()`` Arrow, ``.fetchall()`` tuples.
        """
        with interruptible():
            return self._connection.sql(query, params=params)

    def frame(self, name: str, params: Any = None) -> polars.DataFrame:
        """The Polars frame of the statement ``queries/<name>.sql``."""
        with interruptible():
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
        """What makes every answer incomplete, a sentence each; empty for a whole log."""
        notes = [f"{line.file} line {line.line} (byte {line.byte_offset}) cannot be read: "
                 f"{line.reason}" for line in self._bad_lines]  # fmt: skip
        return notes + stored.notes(self._unreadable) + self.losses

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
        told += [f"the log was pruned: events 1 to {seq} of writer {name} are not in it"
                 for name, seq in self._rows("from pruned order by short_name")]  # fmt: skip
        if self._doubled:
            told.append(f"{counted(self._doubled, 'doubled line')} counted once")
        told += stored.warnings(self.imported) if self.imported else []
        return told + self._unasked

    def metrics_gap(self) -> polars.DataFrame:
        """One row a worker and count that the metrics and the log tell differently."""
        return self.frame("metrics_gap")

    def close(self) -> None:
        """Free the memory; relations made from this warehouse end with it."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_warehouse(book: str | Path | None = None, *, out: str | Path | None = None) -> Warehouse:
    """The warehouse of ``book``, else of TALLYBOOK_BOOK, ``./book`` or the sample book.

    Raises BadInput where there is no book. A log with holes opens, with ``notes`` that name them.
    """
    return Warehouse(layout.find_book_or_sample(book), Path(out) if out else None)


def _connect() -> duckdb.DuckDBPyConnection:
    """A DuckDB that reads no network and no variable of the caller, and counts time in UTC."""
    connection = duckdb.connect(
        config={"autoinstall_known_extensions": "false", "python_enable_replacements": "false"}
    )
    connection.execute("load icu; set TimeZone = 'UTC'")
    return connection
