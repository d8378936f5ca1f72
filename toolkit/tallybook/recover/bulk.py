"""The bulk fold of a cache: the last write of each key, found by DuckDB over the segments.

``fold.apply`` is the specification; a test on random histories holds this to it. Segments that
are whole go to DuckDB as they lie there. Of any other, and of the one that still grows, it gets a
copy of the lines that the survey takes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import orjson

from tallybook import packed, statements, whole
from tallybook.entry import Entry
from tallybook.errors import NoRoom, TallybookError
from tallybook.event import encode
from tallybook.ids import Parity
from tallybook.ops import memory
from tallybook.recover.certificate import Cached
from tallybook.recover.evidence import Judged
from tallybook.recover.pieces import Piece, taken
from tallybook.recover.survey import NO_DOUBT, Survey

LINE_LIMIT = 64 * 1024 * 1024
_SQL = statements.load("tallybook.recover", "bulk.sql")
_COLUMNS = {
    "seq": "BIGINT",
    "event": "VARCHAR",
    "occurred_at": "VARCHAR",
    "boot_us": "BIGINT",
    "key": "VARCHAR",
    "value": "JSON",
    "version": "BIGINT",
    "base_version": "BIGINT",
    "etag": "VARCHAR",
    "last_modified": "VARCHAR",
    "origin": "VARCHAR",
    "pending": "BOOLEAN",
    "ttl_s": "DOUBLE",
    "depends_on": "JSON",
    "value_schema": "VARCHAR",
    "synced_at": "VARCHAR",
    "job_id": "VARCHAR",
}
_BATCH = 10_000
_CHUNK = 1 << 20


class Untypical(Exception):
    """A line is no line of ours: a cell is of another kind, or longer than any that we write."""


class BulkFold:
    """The cache of a surveyed log as of an instant, in a DuckDB of its own.

    Use it as a context manager. ``aside`` is a folder for copies and for what memory cannot hold.
    """

    def __init__(self, survey: Survey, aside: Path, as_of: str | None = None) -> None:
        self._survey = survey
        self._aside = aside
        self._as_of = as_of
        self._boots: dict[str, str] = {}
        self._connection = duckdb.connect(
            config={
                "memory_limit": "1200MB",
                "temp_directory": str(aside),
                "preserve_insertion_order": "false",
                "autoinstall_known_extensions": "false",
            }
        )
        memory.tell_progress(self._connection)

    def __enter__(self) -> BulkFold:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def fold(self, progress: Callable[[int], None]) -> None:
        """Fold every writer, the last write of each key first by writer, then over all."""
        self._connection.execute(_SQL["create"])
        done = writers = 0
        for writer in self._survey.writers:
            pieces = self._survey.pieces[writer]
            files = [str(path) for path in self._files(pieces)]
            events = sum(piece.last_seq - piece.first_seq + 1 for piece in pieces)
            if files:
                with self._polled(done, events, progress):
                    self._fold(writer, files)
                writers += 1
            done += events
            progress(done)
        self._connection.execute(_SQL["latest_of_one" if writers < 2 else "latest"])

    @contextmanager
    def _polled(self, done: int, events: int, progress: Callable[[int], None]) -> Iterator[None]:
        """Tell how far a statement is while it runs."""

        def tell(percent: float) -> None:
            progress(done + int(events * percent / 100))

        with memory.watched(self._connection.query_progress, tell):
            yield

    def _fold(self, writer: str, files: list[str]) -> None:
        given = {
            "files": files,
            "columns": _COLUMNS,
            "line_limit": LINE_LIMIT,
            "as_of": self._as_of,
            "begin": self._survey.place(writer, 0),
        }
        try:
            with _told(self._aside):
                self._connection.execute(_SQL["changes"], given)
        except (duckdb.InvalidInputException, duckdb.ConversionException) as error:
            raise Untypical(str(error)) from error

    def _files(self, pieces: list[Piece]) -> Iterator[Path]:
        items = {piece.item.name: piece.item for piece in pieces}
        for number, item in enumerate(items.values()):
            path = self._readable(item, [p for p in pieces if p.item is item], number)
            self._boots[str(path)] = item.boot_id
            yield path

    def _readable(self, item: Judged, pieces: list[Piece], number: int) -> Path:
        """An archive as it lies there, where all of it is folded; else a copy of what is."""
        lines = sum(piece.last_seq - piece.first_seq + 1 for piece in pieces)
        is_whole = item.in_order and not item.bad and item.lines == lines
        if is_whole and packed.is_packed(item.path):
            return item.path
        path = self._aside / f"{number}-{item.name}"
        with path.open("wb") as file:
            if is_whole:
                _copy_text(item, file)
            else:
                file.writelines(encode(event) + b"\n" for event in taken(pieces))
        return path

    # what came of it

    def cached(self, begin: int = NO_DOUBT) -> Cached:
        """How many keys there are, which are unknown or unsealed, and the parity of all."""
        doubt = self._survey.doubt(begin)
        spans = [
            [self._survey.place(writer, first), self._survey.place(writer, last)]
            for writer, parts in self._survey.sealed().items()
            for first, last in parts
        ]
        self._connection.execute("create table sealed (first_place bigint, last_place bigint)")
        if spans:
            self._connection.executemany("insert into sealed values (?, ?)", spans)
        digest = Parity()
        for rows in _batches(self._connection.execute(_SQL["values"])):
            digest.take((key, orjson.loads(value)) for key, value in rows)
        return Cached(
            keys=self._rows("keys")[0][0],
            unknown=[key for (key,) in self._rows("unknown", doubt=doubt)],
            unsealed=[key for (key,) in self._rows("unsealed", doubt=doubt, begin=begin)],
            parity=digest.hex(),
        )

    def _rows(self, name: str, **given: int) -> list[tuple[Any, ...]]:
        return self._connection.execute(_SQL[name], given or None).fetchall()

    def entries(self) -> Iterator[Entry]:
        """The entries by key."""
        for rows in _batches(self._connection.execute(_SQL["entries"])):
            yield from map(self._entry, rows)

    def write(self, target: Path) -> None:
        """Write the entries by key: Parquet where the name ends so, else NDJSON.

        On a connection of its own, so that ``cached`` may go on beside it.
        """
        kind = "parquet" if target.suffix == ".parquet" else "json"
        with whole.written(target) as aside, _told(target), self._connection.cursor() as beside:
            path = str(aside).replace("'", "''")
            beside.execute(_SQL["export"].format(target=path, kind=kind))

    def _entry(self, row: tuple[Any, ...]) -> Entry:
        key, _, occurred_at, version, origin, value, rest = row
        told = orjson.loads(rest) if rest else {}
        timed = told.get("ttl_s") is not None
        return Entry(
            key=key,
            value_json=orjson.dumps(orjson.loads(value)).decode(),
            version=version,
            base_version=told.get("base_version"),
            etag=told.get("etag"),
            last_modified=told.get("last_modified"),
            origin=origin,
            pending=bool(told.get("pending")),
            ttl_s=told.get("ttl_s"),
            depends_on=tuple(told.get("depends_on") or ()),
            value_schema=told.get("value_schema"),
            synced_at=told.get("synced_at"),
            job_id=told.get("job_id"),
            updated_at=occurred_at,
            boot_us=told["boot_us"] if timed else 0,
            boot_id=self._boots[told["file"]] if timed else "",
        )


@contextmanager
def _told(place: Path) -> Iterator[None]:
    """What the disk or memory does not allow, as an error of ours."""
    try:
        yield
    except (duckdb.IOException, duckdb.OutOfMemoryException) as error:
        words = str(error)
        if os.strerror(errno.ENOSPC) in words:
            raise NoRoom(f"{place}: {os.strerror(errno.ENOSPC)}; nothing was changed") from error
        raise TallybookError(f"{place}: {words.splitlines()[0]}; nothing was changed") from error


def _copy_text(item: Judged, file: BinaryIO) -> None:
    """Copy the lines that were judged; what was appended since is not among them."""
    left = item.text_bytes
    with packed.reading(item.path) as source:
        while left and (chunk := source.read(min(left, _CHUNK))):
            file.write(chunk)
            left -= len(chunk)


def _batches(relation: Any) -> Iterable[list[tuple[Any, ...]]]:
    return iter(lambda: relation.fetchmany(_BATCH), [])
