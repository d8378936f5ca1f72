"""How far the log once reached: what state.db, the metrics, checkpoints and manifests saw of it.

They are read before the log: what a living book appends in between is only more.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb

from tallybook.errors import TallybookError
from tallybook.layout import MANIFEST_SUFFIX, Layout
from tallybook.ops import surviving

_POSITION = "select writer, seq from position"


@dataclass(frozen=True, slots=True)
class Mark:
    """``source`` saw the line ``seq`` of ``writer``."""

    source: str
    writer: str
    seq: int


def read(place: Layout) -> tuple[list[Mark], list[str]]:
    """The marks of a book, and a sentence for each source that could not be asked."""
    marks = [mark for mark in _files(place) if mark]
    try:
        found = surviving.rows(place.state, _POSITION) or []
    except TallybookError as error:
        return marks, [f"it is not known whether the log has lost its end: {error}"]
    marks += [Mark(place.state.name, str(writer), int(seq)) for writer, seq in found if writer]
    return marks, []


def keep(connection: duckdb.DuckDBPyConnection, marks: list[Mark]) -> None:
    """Make the table `marks`."""
    connection.execute("create table marks (source varchar, writer varchar, seq bigint)")
    if marks:
        rows = [[mark.source, mark.writer, mark.seq] for mark in marks]
        connection.executemany("insert into marks values (?, ?, ?)", rows)


def _files(place: Layout) -> Iterator[Mark | None]:
    yield _mark(place.latest, f"{place.metrics.name}/{place.latest.name}", "seq")
    for path in sorted(place.checkpoints.glob("*.json")):
        yield _mark(path, f"{place.checkpoints.name}/{path.name}", "seq")
    for path in sorted(place.log.glob(f"*{MANIFEST_SUFFIX}")):
        yield _mark(path, f"{place.log.name}/{path.name}", "last_seq")


def _mark(path: Path, source: str, field: str) -> Mark | None:
    """The mark in a JSON file; None where there is none that can be read."""
    try:
        told = json.loads(path.read_bytes())
        return Mark(source, str(told["writer"]), int(told[field]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
