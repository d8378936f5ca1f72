"""A cache from the change log of another system, read line by line through a profile.

A change log has no numbers without a hole, so what is missing in it cannot be seen. The order is
that of the lines; a part that was delivered twice comes out the same.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tallybook import doubled
from tallybook.errors import BadInput
from tallybook.ids import parity
from tallybook.recover.evidence import BadPlace
from tallybook.recover.profile import ChangeProfile, member

_GZIP = b"\x1f\x8b"


class _Refused(ValueError):
    """Why a line is no change, in a few words."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A row as it stands: its value, how often it was written, when last."""

    value: dict[str, Any]
    version: int
    at: str


@dataclass
class ChangedCache:
    """The rows of all tables by key, ``db.table/key``, and what was met on the way."""

    profile: ChangeProfile
    key_columns: tuple[str, ...] = ()
    rows: dict[str, Cell] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    tables: dict[str, int] = field(default_factory=dict)
    bad: list[BadPlace] = field(default_factory=list)
    events_read: int = 0
    put: int = 0
    invalidated: int = 0
    skipped: int = 0
    first_at: str = ""
    last_at: str = ""

    @property
    def parity(self) -> str:
        """The digest of the cache."""
        return parity((key, cell.value) for key, cell in self.rows.items())

    @property
    def _comments(self) -> tuple[bytes, ...]:
        return tuple(mark.encode() for mark in self.profile.comment)

    def read(self, path: Path) -> None:
        """Fold a file, or every file of a folder by name."""
        paths = sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]
        if not paths:
            raise BadInput(f"{path} holds no file")
        for one in paths:
            for number, offset, line in _lines(one):
                self._line(one, number, offset, line)

    def _line(self, path: Path, number: int, offset: int, line: bytes) -> None:
        try:
            self._take(line)
        except _Refused as reason:
            self.bad.append(BadPlace(path.name, number, offset, str(reason)))

    def _take(self, line: bytes) -> None:
        if line.lstrip().startswith(self._comments):
            self.skipped += 1
            return
        try:
            change = orjson.loads(line)
            again = doubled.read_again(line, change)
        except (orjson.JSONDecodeError, RecursionError) as error:
            raise _Refused(f"not JSON: {getattr(error, 'msg', error)}") from None
        if reason := doubled.reason(again):
            raise _Refused(reason)
        if change is None:
            self.skipped += 1  # a tombstone, for the log's own compaction
            return
        change = member(change, self.profile.unwrap) or change if self.profile.unwrap else change
        if not isinstance(change, dict):
            raise _Refused("not a JSON object")
        self._apply(change, member(change, self.profile.operation))

    def _apply(self, change: dict[str, Any], operation: Any) -> None:
        profile = self.profile
        table = ".".join(str(part) for name in profile.table if (part := member(change, name)))
        if operation in profile.put:
            self._put(change, table)
        elif operation in profile.invalidate:
            self._forget(self._key(change, self._gone(change), table))
        elif operation in profile.truncate:
            self._truncate(table)
        elif operation in profile.skip:
            self.skipped += 1
            return
        else:
            raise _Refused(f"{profile.operation} {operation!r} is not in the profile")
        self._note(table, profile.moment(change))

    def _note(self, table: str, at: str) -> None:
        self.events_read += 1
        self.tables[table] = self.tables.get(table, 0) + 1
        self.first_at = min(self.first_at or at, at)
        self.last_at = max(self.last_at, at)

    def _put(self, change: dict[str, Any], table: str) -> None:
        row = member(change, self.profile.value)
        if not isinstance(row, dict):
            raise _Refused(f"{self.profile.value} is no row")
        key, before = self._key(change, row, table), self._before(change, row, table)
        if before and before != key:
            self._forget(before)
        self.rows[key] = Cell(self._filled(row, key, before), self._version(key), self._at(change))
        self.put += 1

    def _version(self, key: str) -> int:
        return self.rows[key].version + 1 if key in self.rows else 1

    def _at(self, change: dict[str, Any]) -> str:
        return self.profile.moment(change)

    def _before(self, change: dict[str, Any], row: dict[str, Any], table: str) -> str | None:
        """The key that a row had before, where the change tells it."""
        old = member(change, self.profile.old) if self.profile.old else None
        if not isinstance(old, dict):
            return None
        return self._key(change, row | old if self.profile.old_is_partial else old, table)

    def _filled(self, row: dict[str, Any], key: str, before: str | None) -> dict[str, Any]:
        """A row with the cells that were not sent, taken from what it was."""
        self.unknown.discard(key)
        mark = self.profile.unavailable
        missing = [name for name, cell in row.items() if mark and cell == mark]
        known = self.rows.get(before or key) or self.rows.get(key)
        for name in missing:
            if known is None or name not in known.value:
                self.unknown.add(key)
            else:
                row = row | {name: known.value[name]}
        return row

    def _gone(self, change: dict[str, Any]) -> dict[str, Any]:
        for name in (self.profile.old, self.profile.value):
            row = member(change, name) if name else None
            if isinstance(row, dict):
                return row
        raise _Refused("says no row that is gone")

    def _forget(self, key: str) -> None:
        self.unknown.discard(key)
        self.invalidated += self.rows.pop(key, None) is not None

    def _truncate(self, table: str) -> None:
        for key in [key for key in self.rows if key.startswith(f"{table}/")]:
            self._forget(key)

    def _key(self, change: dict[str, Any], row: dict[str, Any], table: str) -> str:
        told = member(change, self.profile.key_columns) if self.profile.key_columns else None
        columns = self.key_columns or tuple(map(str, told or ()))
        if not columns:
            raise _Refused("does not say its key columns; give --key COLUMN")
        missing = [name for name in columns if row.get(name) is None]
        if missing:
            raise _Refused(f"no key column {', '.join(missing)}")
        return f"{table}/" + "/".join(str(row[name]) for name in columns)


def _lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """(number, byte offset, line) of a text, gzip or not; blank lines are left out."""
    offset = 0
    try:
        with path.open("rb") as file:
            is_packed = file.read(2) == _GZIP
        with gzip.open(path, "rb") if is_packed else path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, offset, line
                offset += len(line)
    except (OSError, EOFError) as error:
        raise BadInput(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
