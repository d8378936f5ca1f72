"""The cache as one JSON file: entries in memory, flushed whole.

    {"v": 1, "position": {…}, "entries": {key: {"value": …, "version": 1, …}}}

A flush takes flock on the folder, reads what stands in the file, lays its own changes over that,
writes beside it, syncs and renames. So no process takes away what another flushed, and a kill
leaves the old file or the new one. A file that is torn, of zeros or of another shape counts as
absent: it is a fold of the log and is made anew.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import fields
from itertools import takewhile
from pathlib import Path
from typing import Any

import orjson

from tallybook.alone import alone
from tallybook.entry import Entry
from tallybook.log.chain import Position, as_json, from_json
from tallybook.log.durable import replace_file

_VERSION = 1
_FIELDS = tuple(f.name for f in fields(Entry) if f.name not in ("key", "value_json"))
_DEFAULTS = {f.name: f.default for f in fields(Entry)}


class JsonCache:
    """The entries of one file, and the place of the log that they stand for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: dict[str, Entry] = {}
        self._dependents: dict[str, set[str]] = {}
        self._keys: list[str] = []
        self._changed: dict[str, Entry | None] = {}
        self.position = Position()
        found = _load(path)
        self.was_absent = found is None
        if found:
            self.position, entries = found
            for entry in entries.values():
                self._keep(entry)

    def get(self, key: str) -> Entry | None:
        """The entry of that key."""
        return self._entries.get(key)

    def put(self, entry: Entry) -> None:
        """Keep an entry, new or not; in the file with the next flush."""
        self._changed[entry.key] = entry
        self._keep(entry)

    def drop(self, key: str) -> None:
        """Forget an entry; in the file with the next flush."""
        self._changed[key] = None
        self._leave(key)

    def dependents(self, key: str) -> list[str]:
        """The keys of the entries that depend on ``key`` themselves, in order."""
        return sorted(self._dependents.get(key, ()))

    def scan(self, prefix: str = "") -> Iterator[Entry]:
        """Entries by key, those whose key begins with ``prefix``."""
        start = bisect_left(self._keys, prefix)
        keys = takewhile(lambda key: key.startswith(prefix), self._keys[start:])
        return (self._entries[key] for key in keys)

    def size(self) -> int:
        """Number of entries."""
        return len(self._entries)

    @property
    def is_flushed(self) -> bool:
        """Whether the file has all that was put and dropped here."""
        return not self._changed and not self.was_absent

    def flush(self) -> None:
        """Write what changed here over what the file has now; on disk when this returns."""
        with alone(self._path.parent):
            found = _load(self._path)
            if found:
                self._take(found[1])
            replace_file(self._path, self._as_json(), "cache file")
        self._changed.clear()
        self.was_absent = False

    def _take(self, theirs: dict[str, Entry]) -> None:
        """What others flushed meanwhile, but for the keys that changed here."""
        for key in self._entries.keys() - theirs.keys() - self._changed.keys():
            self._leave(key)
        for key, entry in theirs.items():
            if key not in self._changed and self._entries.get(key) != entry:
                self._keep(entry)

    def _keep(self, entry: Entry) -> None:
        self._leave(entry.key)
        self._entries[entry.key] = entry
        insort(self._keys, entry.key)
        for depends_on in entry.depends_on:
            self._dependents.setdefault(depends_on, set()).add(entry.key)

    def _leave(self, key: str) -> None:
        before = self._entries.pop(key, None)
        if before is None:
            return
        del self._keys[bisect_left(self._keys, key)]
        for depends_on in set(before.depends_on):
            self._dependents[depends_on].discard(key)
            if not self._dependents[depends_on]:
                del self._dependents[depends_on]

    def _as_json(self) -> bytes:
        shown = {key: _shown(self._entries[key]) for key in self._keys}
        whole = {"v": _VERSION, "position": as_json(self.position), "entries": shown}
        return orjson.dumps(whole, option=orjson.OPT_INDENT_2) + b"\n"


def _shown(entry: Entry) -> dict[str, Any]:
    """An entry with its value first; fields at their default are left out."""
    told = {name: getattr(entry, name) for name in _FIELDS}
    kept = {name: value for name, value in told.items() if value != _DEFAULTS[name]}
    return {"value": orjson.Fragment(entry.value_json), **kept}


def _load(path: Path) -> tuple[Position, dict[str, Entry]] | None:
    """What the file holds; None where it is absent, cannot be read or is no whole file of this
    shape."""
    try:
        raw = orjson.loads(path.read_bytes())
        if raw["v"] != _VERSION:
            return None
        return from_json(raw["position"]), {k: _entry(k, v) for k, v in raw["entries"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _entry(key: str, shown: dict[str, Any]) -> Entry:
    value_json = orjson.dumps(shown.pop("value")).decode()
    if "depends_on" in shown:
        shown["depends_on"] = tuple(shown["depends_on"])
    return Entry(key, value_json, **shown)
