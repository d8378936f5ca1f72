"""From files to events: text cells, typed by the rules of the profile, then jobs, then events.

Nothing is guessed. A row that does not fit is set apart with file, line and reason; what a log
tells twice, backwards or not at all is counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import duckdb

from tallybook.errors import BadInput
from tallybook.ops.imports import fields as cells
from tallybook.ops.imports import origins, reading, texts
from tallybook.ops.imports.profile import UNITS, Profile, Times
from tallybook.ops.imports.texts import BadRow, Text

_SQL = Path(__file__).parent / "sql"
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the rows, and what is true of the jobs.

    Of a log with a row a job, rows = jobs + superseded + left_out + unreadable. Of one with a row
    an event, rows = used + ignored + left_out + unreadable, and used counts the repeated ones too.
    """

    rows: int = 0
    jobs: int = 0
    events: int = 0
    used: int = 0
    ignored: int = 0
    superseded: int = 0
    left_out: int = 0
    unreadable: int = 0
    never_started: int = 0
    open: int = 0
    negative_waits: int = 0
    negative_runs: int = 0
    ends_without_start: int = 0
    no_submit: int = 0
    no_end_time: int = 0
    contradicted: int = 0
    repeated_submits: int = 0
    repeated_starts: int = 0
    repeated_ends: int = 0
    out_of_order: int = 0


@dataclass(slots=True)
class Mapped:
    """The jobs of some files, as the view of events ``sql`` tells them in ``connection``."""

    connection: duckdb.DuckDBPyConnection
    sql: str
    counts: Counts
    files: list[tuple[str, int]]
    unreadable: list[BadRow]
    unknown_words: dict[str, int]


def statement(name: str) -> str:
    """The text of ``sql/<name>.sql``."""
    return (_SQL / f"{name}.sql").read_text("utf-8")


def map_files(
    connection: duckdb.DuckDBPyConnection, paths: Sequence[Path], profile: Profile, aside: Path
) -> Mapped:
    """Read ``paths`` in their order as one log.

    Raises BadInput where a file is of another kind, lacks a column, or nothing in it fits.
    """
    reader = _Reader(connection, profile, aside)
    for path in paths:
        reader.read(path)
    return reader.mapped()


class _Reader:
    """The rows of one log: files are read one after another, then mapped together."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, profile: Profile, aside: Path
    ) -> None:
        self._db, self._profile, self._aside = connection, profile, aside
        self._texts: list[tuple[Text, int, Path]] = []
        self._unread: list[BadRow] = []
        self._of_events = profile.reading.rows == "events"
        self._prepare()

    def _prepare(self) -> None:
        times = self._profile.times
        if not times.has_year:
            raise BadInput("the times of this log have no year: say which it begins in, "
                           "as in --set time.year=2024")  # fmt: skip
        self._run(statement("counted"))
        self._run(statement("named_twice"))
        self._set("time_unit_us", float(UNITS.get(times.format, 1)))
        self._set("unit_us", float(UNITS[times.unit]))
        self._set("origin_us", 0)
        self._set("time_prefix", f"{times.year} " if times.year else "")
        self._set("time_format", ("%Y " if times.year else "") + times.format)
        self._set("absent", list(times.absent))
        self._set("has_id", "id" in self._profile.columns)
        self._set("has_words", "status" in self._profile.columns)
        self._run("set TimeZone = '" + times.zone.replace("'", "") + "'")
        self._run(statement(f"time_{_kind_of(times)}"))
        self._run(statement("absent_some" if times.absent else "absent_none"))
        self._run(statement("make_events" if self._of_events else "make_jobs"))

    def _run(self, query: str, params: Any = None) -> list[tuple[Any, ...]]:
        return self._db.execute(query, params or []).fetchall()

    def _set(self, name: str, value: Any) -> None:
        self._db.execute(f"set variable {name} = ?", [value])

    def _count(self, query: str) -> int:
        return int(self._run(query)[0][0])

    # reading

    def read(self, path: Path) -> None:
        """Add the rows of one file."""
        folder = self._aside / f"file-{len(self._texts)}"
        folder.mkdir()
        text = reading.prepare(path, self._profile, folder)
        self._set("origin_us", origins.origin_us(text.head, self._profile.times, path))
        before = self._count("select count(*) from rows")
        text = self._insert(text, folder)
        text.bad += texts.rejected(self._db, text)
        self._texts.append((text, before, path))

    def _insert(self, text: Text, folder: Path) -> Text:
        try:
            self._insert_once(text)
        except duckdb.InvalidInputException as error:
            if "state machine" not in str(error):
                raise
            text = texts.with_one_line_end(text, folder)
            self._insert_once(text)
        return text

    def _insert_once(self, text: Text) -> None:
        asked = cells.select(self._profile, text)
        if text.columns is None:
            known = {"lines": text.first_lines(), "objects": asked.params["objects"]}
            self._run(statement("usual_names"), known)
        typed = statement("type_events" if self._of_events else "type_jobs")
        try:
            self._db.execute(f"insert into rows with cells as ({asked.sql}) {typed}", asked.params)
        except duckdb.InvalidInputException:
            raise
        except duckdb.Error as error:
            told = str(error).splitlines()[0]
            raise BadInput(f"{text.source} cannot be read: {told}") from error

    # mapping

    def mapped(self) -> Mapped:
        """The jobs of all rows that were read."""
        read = self._count("select count(*) from rows")
        self._require_fit(read)
        unknown = self._know_words()
        self._run(statement("apart"))
        self._run(statement("apart_unread"))
        counts = self._events() if self._of_events else self._jobs()
        unreadable = self._unreadable()
        rejected = len(unreadable) - self._count("select count(*) from apart")
        told = counts | {
            "rows": read + rejected,
            "unreadable": len(unreadable),
            "left_out": self._count("select count(*) from rows where not kept"),
            "out_of_order": self._count(statement(f"{self._kind}_order")),
        }
        known = {one.name for one in fields(Counts)}
        return Mapped(
            self._db, statement(f"{self._kind}_events"),
            Counts(**{name: int(value) for name, value in told.items() if name in known}),
            [(str(path), before) for _, before, path in self._texts], unreadable, unknown,
        )  # fmt: skip

    @property
    def _kind(self) -> str:
        return "events" if self._of_events else "jobs"

    def _require_fit(self, rows: int) -> None:
        """Raise BadInput where nothing fits: that is a wrong profile, not a bad log."""
        sources = ", ".join(str(path) for _, _, path in self._texts)
        if not rows:
            rejected = sum(len(text.bad) for text, _, _ in self._texts)
            raise BadInput(f"{sources}: no row can be read ({rejected} are refused)"
                           + self._advice())  # fmt: skip
        bad = self._run(statement("bad_reasons"), {"examples": _EXAMPLES})
        for reason, count, examples, fitting in bad:
            if not fitting:
                shown = ", ".join(examples)
                raise BadInput(f"{sources}: none of the {count:,} rows fits: {reason}; "
                               f"for example {shown}" + self._advice())  # fmt: skip
        if self._of_events and not self._count("select count(id) from rows"):
            raise BadInput(f"{sources}: no row has an id" + self._advice())

    def _advice(self) -> str:
        return f"; is it the profile {self._profile.name}? --inspect proposes one"

    def _know_words(self) -> dict[str, int]:
        """Make the table `words`; the words that the profile does not know, with their rows."""
        self._run("create or replace table words (word varchar, status varchar)")
        found = self._run("select word, count(*) from rows where kept and bad is null "
                          "and word is not null group by word order by word")  # fmt: skip
        known = [(word, status) for word, _ in found if (status := self._status(word))]
        if known:
            self._db.executemany("insert into words values (?, ?)", known)
        named = {word for word, _ in known}
        if not self._profile.words:
            return {}
        return {word: count for word, count in found if word not in named}

    def _status(self, word: str) -> str | None:
        """What a word means: one that is given as it is goes before one with a star."""
        bare = word.strip()
        given = self._profile.words
        exact = next((status for status, words in given.items() if bare in words), None)
        return exact or next(
            (status for status, words in given.items()
             if any(fnmatchcase(bare, pattern) for pattern in words)), None
        )  # fmt: skip

    def _jobs(self) -> dict[str, int]:
        self._run(statement("apart_jobs"))
        self._run("create or replace table superseded (row bigint)")
        if self._profile.reading.rows == "states":
            self._run(statement("superseded"))
        elif "id" in self._profile.columns and self._count(
            "select count(id) - count(distinct id) from rows"
        ):
            self._run(statement("apart_repeated"))
        left = self._count(statement("rows_of_no_job"))
        self._run(statement("jobs_some" if left else "jobs_all"))
        self._run(statement("jobs"))
        self._run(statement("enqueued"))
        superseded = self._count("select count(*) from superseded")
        return self._one_row("jobs_counts") | {"superseded": superseded}

    def _events(self) -> dict[str, int]:
        self._run(statement("apart_events"))
        in_order = not self._count(statement("events_order")) and not self._count(
            "select count(start_us) from rows"
        )
        self._run(statement("stepped"))
        self._run(statement("placed_in_order" if in_order else "placed_sorted"))
        self._run(statement("lives" if in_order else "lives_none"))
        self._set("odd", self._count(statement("steps_of_no_plain_job")))
        for name in ("steps", "runs", "told_once", "events_jobs", "enqueued"):
            self._run(statement(name))
        ignored = self._count(
            "select count(*) from rows inner join words on words.word = rows.word "
            "where kept and bad is null and status = 'ignore'"
        )
        return self._one_row("events_counts") | {"ignored": ignored}

    def _one_row(self, name: str) -> dict[str, int]:
        found = self._db.execute(statement(name))
        names = [column[0] for column in found.description or []]
        values = found.fetchall()[0]
        return {name: int(value or 0) for name, value in zip(names, values, strict=True)}

    def _unreadable(self) -> list[BadRow]:
        """Every row that is in no job, file by file in order of line."""
        apart = self._run("select row, reason from apart order by row")
        told: list[BadRow] = []
        ends = [before for _, before, _ in self._texts[1:]] + [1 << 62]
        for (text, before, _), end in zip(self._texts, ends, strict=True):
            mine = {row - before: reason for row, reason in apart if before <= row < end}
            lines = text.line_of(mine)
            bad = [BadRow(text.source, lines.get(row), *_parted(reason))
                   for row, reason in mine.items()]  # fmt: skip
            told += sorted([*text.bad, *bad], key=lambda one: one.line or 0)
        return told


def _kind_of(times: Times) -> str:
    if times.format in UNITS:
        return "epoch"
    if times.format != "iso":
        return "format"
    return "iso_utc" if times.zone == "UTC" else "iso"


def _parted(reason: str) -> tuple[str, str]:
    """The reason and the cell that it is about."""
    head, mark, cell = reason.partition(": ")
    what, second, text = cell.partition(": ")
    return (f"{head}: {what}", text) if mark and second else (reason, "")
