"""Entries of the cache that were read since the last change, and given again until the next one.

A read of state.db takes locks and a transaction of SQLite. Where it is certain without it that
nobody has changed anything, what was read is still so.
"""

from __future__ import annotations

from collections.abc import Callable

from tallybook.entry import Entry
from tallybook.log.reader import Position

MOST = 1024
LARGEST_CHARACTERS = 4096


class RecentEntries:
    """Entries by key, and keys that have none, as they are at one place of the log.

    ``certain_end`` says where the log ends, or None where that is not certain. Threads may share
    it: what another thread keeps meanwhile is newer.
    """

    def __init__(self, certain_end: Callable[[], Position | None]) -> None:
        self._certain_end = certain_end
        self._entries: dict[str, Entry | None] = {}
        self._at: Position | None = None

    def get(self, key: str, read: Callable[[str], Entry | None]) -> Entry | None:
        """The entry of that key; by ``read`` where it is not known."""
        end = self._certain_end()
        if end is None:
            return read(key)
        if end is not self._at:
            self._entries = {}
            self._at = end
        entries = self._entries
        try:
            return entries[key]
        except KeyError:
            entry = read(key)
        if len(entries) < MOST and _is_small(entry):
            entries[key] = entry
        return entry


def _is_small(entry: Entry | None) -> bool:
    return entry is None or len(entry.value_json) <= LARGEST_CHARACTERS
