"""The cache on SQLite: rows of the table ``cache``. The caller holds the transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import fields
from itertools import takewhile
from typing import Any

from tallybook import statements
from tallybook.entry import Entry

_FIELDS = tuple(field.name for field in fields(Entry))
_COLUMNS = tuple(name.removesuffix("_json") for name in _FIELDS)
_DEPENDS_ON = _FIELDS.index("depends_on")
_PENDING = _FIELDS.index("pending")
_SQL = {
    name: text.replace("{columns}", ", ".join(_COLUMNS)).replace(
        "{marks}", ", ".join("?" * len(_COLUMNS))
    )
    for name, text in statements.load("tallybook.cache", "cache.sql").items()
}
SCHEMA = _SQL["schema"]


class SqliteCache:
    """The cache entries of one book, over a connection that the book owns."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def get(self, key: str) -> Entry | None:
        """The entry of that key."""
        row = self._connection.execute(_SQL["get"], (key,)).fetchone()
        return _entry(row) if row else None

    def put(self, entry: Entry) -> None:
        """Keep an entry, new or not."""
        self._connection.execute(_SQL["put"], _row(entry))
        self._connection.execute(_SQL["undepend"], (entry.key,))
        if entry.depends_on:
            self._connection.executemany(_SQL["depend"], _dependencies(entry))

    def put_all(self, entries: Iterable[Entry]) -> None:
        """Keep many new entries at once."""
        kept = list(entries)
        self._connection.executemany(_SQL["put"], map(_row, kept))
        dependencies = (pair for entry in kept for pair in _dependencies(entry))
        self._connection.executemany(_SQL["depend"], dependencies)

    def drop(self, key: str) -> None:
        """Forget an entry."""
        self._connection.execute(_SQL["drop"], (key,))
        self._connection.execute(_SQL["undepend"], (key,))

    def dependents(self, key: str) -> list[str]:
        """The keys of the entries that depend on ``key`` themselves, in order."""
        return [row[0] for row in self._connection.execute(_SQL["dependents"], (key,))]

    def scan(self, prefix: str = "") -> Iterator[Entry]:
        """Entries by key, those whose key begins with ``prefix``."""
        rows = self._connection.execute(_SQL["scan_from"], (prefix,))
        return takewhile(lambda entry: entry.key.startswith(prefix), map(_entry, rows))

    def size(self) -> int:
        """Number of entries."""
        return int(self._connection.execute(_SQL["size"]).fetchone()[0])


def _dependencies(entry: Entry) -> list[tuple[str, str]]:
    return [(depends_on, entry.key) for depends_on in entry.depends_on]


def _row(entry: Entry) -> list[Any]:
    row = [getattr(entry, name) for name in _FIELDS]
    row[_DEPENDS_ON] = json.dumps(row[_DEPENDS_ON], ensure_ascii=False)
    return row


def _entry(row: tuple[Any, ...]) -> Entry:
    values = list(row)
    depends_on = values[_DEPENDS_ON]
    values[_DEPENDS_ON] = () if depends_on == "[]" else tuple(json.loads(depends_on))
    values[_PENDING] = bool(values[_PENDING])
    return Entry(*values)
