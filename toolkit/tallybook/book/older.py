"""State files of an older version, read column by name into the tables of this one.

A column that they lack has what the fold of events as old gives it: the default of its field, or
its place in an order that they did not keep. So a checkpoint of a log that was pruned, and
payloads that state.db alone has, outlive an upgrade.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

from tallybook import transitions
from tallybook.book import opening
from tallybook.book import store as stores
from tallybook.entry import Entry
from tallybook.fold import MemoryTables
from tallybook.job import Job, Status
from tallybook.log.chain import Position
from tallybook.order import upgraded_lock
from tallybook.queue.columns import COLUMNS

OLDEST = 5
_JOB = dict(zip(COLUMNS, Job._fields, strict=True))
_ENTRY = {field.name.removesuffix("_json"): field.name for field in fields(Entry)}


def position(path: Path) -> Position | None:
    """Where an older state stands; None for one that is none, or of this version."""
    try:
        with closing(_connect(path)) as connection:
            return _position(connection) if _is_older(connection) else None
    except sqlite3.DatabaseError:
        return None


def read(path: Path) -> tuple[MemoryTables, Position]:
    """All rows of an older state, and where it stands. Raises sqlite3.DatabaseError."""
    with closing(_connect(path)) as connection:
        at = _position(connection)
        jobs = (transitions.upgraded(Job(**row)) for row in _rows(connection, "jobs", _JOB))
        entries = (_entry(row) for row in _rows(connection, "cache", _ENTRY))
        tables = MemoryTables(
            {job.job_id: job for job in jobs},
            {entry.key: entry for entry in entries},
            {row["topic"]: row["status"] for row in connection.execute("select * from topics")},
            at.boot_id,
        )
    _place(tables)
    return tables, at


def _place(tables: MemoryTables) -> None:
    """Give the jobs with an ordering key or a resource their places, which older states lack."""
    ordered = [job for job in tables.jobs.values() if job.ordering_key or job.resource]
    for job in ordered:
        if job.resource and job.status == Status.LEASED:
            tables.put_lock(upgraded_lock(job, tables.boot_id))
    for job in ordered:
        tables.touch(job)


def _connect(path: Path) -> sqlite3.Connection:
    connection = opening.connect_to_read(path)
    connection.row_factory = sqlite3.Row
    return connection


def _is_older(connection: sqlite3.Connection) -> bool:
    (application_id,) = connection.execute("pragma application_id").fetchone()
    (version,) = connection.execute("pragma user_version").fetchone()
    is_ours = bool(application_id == stores.APPLICATION_ID)
    return is_ours and OLDEST <= version < stores.SCHEMA_VERSION


def _position(connection: sqlite3.Connection) -> Position:
    row = connection.execute("select * from position").fetchone()
    return Position(**{name: row[name] for name in Position._fields}) if row else Position()


def _rows(
    connection: sqlite3.Connection, table: str, names: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """The rows of ``table`` by the names of today's fields; other columns are passed over."""
    rows = connection.execute(f"select * from {table}")  # noqa: S608 - a name of ours
    there = [column[0] for column in rows.description if column[0] in names]
    for row in rows:
        yield {names[column]: row[column] for column in there}


def _entry(row: dict[str, Any]) -> Entry:
    depends_on = tuple(json.loads(row["depends_on"]))
    return Entry(**(row | {"depends_on": depends_on, "pending": bool(row["pending"])}))
