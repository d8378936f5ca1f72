"""A cache from what the cloud holds, and the log since: the export is the base, the log goes on.

Which of the two is newer is decided for each key: by the instant that the export covers, else by
the version in its row. What was not yet sent to the cloud stays as it is here.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tallybook import doubled
from tallybook.entry import Entry
from tallybook.errors import BadInput
from tallybook.event import Event
from tallybook.ids import canonical
from tallybook.recover.folding import Folded

_SQLITE = b"SQLite format 3\x00"
_PARQUET = b"PAR1"
WRITES = ("cache.put", "cache.invalidated")
_BESIDE = ("version", "etag", "last_modified", "value_schema")


@dataclass(frozen=True, slots=True)
class Row:
    """One key of an export."""

    value: Any
    version: int | None = None
    etag: str | None = None
    last_modified: str | None = None
    value_schema: str | None = None


@dataclass(frozen=True, slots=True)
class Export:
    """The rows of an export by key, and the instant that it covers (RFC 3339), if known."""

    name: str
    rows: dict[str, Row]
    covers: str | None


def is_export(path: Path) -> bool:
    """Whether a file is no SQLite database. Raises BadInput where there is none."""
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) != _SQLITE
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None


def read(path: Path, key: str, covers: str | None) -> Export:
    """An export: CSV, NDJSON, a JSON array or Parquet, with a column ``key``.

    Its value is the column ``value`` (in CSV as JSON), else an object of all other columns.
    Raises BadInput with the row for a key that is missing or stands twice, and where neither
    ``covers`` nor a version in every row says which of export and log is newer.
    """
    rows: dict[str, Row] = {}
    for number, cells in enumerate(_rows(path), 1):
        name = cells.pop(key, None)
        if name is None or name == "":
            raise BadInput(f"{path} row {number}: no {key}; name its key column with --key")
        if str(name) in rows:
            raise BadInput(f"{path} row {number}: the key {name!r} stands twice")
        rows[str(name)] = _row(cells, f"{path} row {number}")
    if covers is None and any(row.version is None for row in rows.values()):
        raise BadInput(
            f"{path} does not say when it was taken: give --covers TIME, or a version in each row"
        )
    return Export(path.name, rows, covers)


def _row(cells: dict[str, Any], where: str) -> Row:
    beside = {name: cells.get(name) for name in _BESIDE} if "value" in cells else {}
    version = cells.get("version")
    if version is not None:
        try:
            beside["version"] = int(version)
        except (TypeError, ValueError):
            raise BadInput(f"{where}: version {version!r} is no whole number") from None
    return Row(cells.get("value") if "value" in cells else cells, **beside)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    name = path.name.lower()
    with path.open("rb") as file:
        head = file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(_PARQUET):
        return _parquet(path)
    if name.endswith((".csv", ".tsv")):
        return _csv(path, "\t" if name.endswith(".tsv") else ",")
    return _json(path, is_array=head.startswith(b"["))


def _csv(path: Path, delimiter: str) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, delimiter=delimiter)
        names = reader.fieldnames or ()
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise BadInput(f"{path} names a column twice: {', '.join(twice)}")
        for number, cells in enumerate(reader, 1):
            if None in cells or None in cells.values():
                raise BadInput(f"{path} row {number}: it has not as many cells as the header")
            told: dict[str, Any] = {name: cell or None for name, cell in cells.items()}
            if "value" in told:
                told["value"] = _parsed(str(cells["value"] or "null"), f"{path} row {number}")
            yield told


def _json(path: Path, *, is_array: bool) -> Iterator[dict[str, Any]]:
    text = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    if not text.strip():
        raise BadInput(f"{path} is empty")
    found: Iterable[Any]
    if is_array:
        found, again = _read(text, str(path))
        for number, row in enumerate(again or (), 1):
            _require_once(row, f"{path} row {number}")
    else:
        lines = (line for line in text.split(b"\n") if line.strip())
        found = (_parsed(line, f"{path} row {at}") for at, line in enumerate(lines, 1))
    for number, cells in enumerate(found, 1):
        if not isinstance(cells, dict):
            raise BadInput(f"{path} row {number} is no JSON object")
        yield cells


def _parsed(text: str | bytes, where: str) -> Any:
    found, again = _read(text, where)
    _require_once(again, where)
    return found


def _read(text: str | bytes, where: str) -> tuple[Any, Any]:
    """The value of a text, and what ``doubled.read_again`` says of it."""
    raw = text.encode() if isinstance(text, str) else text
    try:
        found = orjson.loads(raw)
        return found, doubled.read_again(raw, found)
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise BadInput(f"{where} is not JSON: {getattr(error, 'msg', error)}") from None


def _require_once(value: Any, where: str) -> None:
    if reason := doubled.reason(value):
        raise BadInput(f"{where}: {reason}")


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    try:
        import polars
    except ImportError:
        raise BadInput(
            f"{path} is Parquet: it needs the extra ops: pip install 'tallybook[ops]'"
        ) from None
    try:
        frame = polars.read_parquet(path)
    except (polars.exceptions.PolarsError, OSError) as error:
        raise BadInput(f"{path} is no readable Parquet file: {error}") from error
    for cells in frame.iter_rows(named=True):
        if isinstance(cells.get("value"), str):
            cells["value"] = _parsed(cells["value"], str(path))
        yield cells


@dataclass
class Overlay:
    """An export over a fold of the log: what to take from which."""

    export: Export
    newer: set[str] = field(default_factory=set)
    versions: dict[str, int] = field(default_factory=dict)
    covered: int = -1
    changes: dict[str, tuple[Entry | None, Entry | None]] = field(default_factory=dict)

    def watch(self, event: Event, place: int) -> None:
        """Learn of an event, in the order of history: how far the log had come when the export was
        taken, and which keys changed since."""
        covers = self.export.covers
        if covers is not None and event.occurred_at <= covers:
            self.covered = max(self.covered, place)
        if event.name == "cache.put":
            self.versions[event["key"]] = event.get("version", 1)
        if event.name in WRITES and covers is not None and event.occurred_at > covers:
            self.newer.add(event["key"])

    def lay(self, folded: Folded) -> None:
        """Make ``folded`` the cache of the export with the log since; ``changes`` tells by key what
        the log alone says and what is true then, where the two differ."""
        folded.export = self.export.name
        entries = folded.tables.entries
        pending = {key for key, entry in entries.items() if entry.pending}
        at = max(self.covered, folded.begin)
        for key, row in self.export.rows.items():
            before = entries.get(key)
            if key not in pending and not self._is_newer(key, row, before):
                after = self._entry(key, row, before)
                entries[key], folded.written[key] = after, at
                if before is None or canonical(before.value) != canonical(after.value):
                    self.changes[key] = before, after
        if self.export.covers is not None:
            for key in entries.keys() - self.export.rows.keys() - pending - self.newer:
                self.changes[key] = entries.pop(key), None

    def _is_newer(self, key: str, row: Row, here: Entry | None) -> bool:
        """Whether what the log says of a key is newer than its row."""
        if self.export.covers is not None:
            return key in self.newer
        known = self.versions.get(key) or (here.version if here else 0)
        return known >= (row.version or 0)

    def _entry(self, key: str, row: Row, before: Entry | None) -> Entry:
        version = row.version or (before.version if before else 1)
        return Entry(
            key=key,
            value_json=orjson.dumps(row.value, default=str).decode(),
            version=version,
            etag=row.etag,
            last_modified=row.last_modified,
            origin="cloud",
            value_schema=row.value_schema,
            synced_at=self.export.covers,
            updated_at=self.export.covers or "",
        )
