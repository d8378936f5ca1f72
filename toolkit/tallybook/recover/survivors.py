"""Caches that were found beside the log, compared with the one that was folded from it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass

from tallybook.book import older, opening
from tallybook.cache.json_file import JsonCache
from tallybook.entry import Entry
from tallybook.ids import canonical, parity
from tallybook.layout import Layout


@dataclass(frozen=True, slots=True)
class Surviving:
    """A cache that was found beside the log, compared with the one folded from it: numbers of
    keys, and the names of those that are not the same. ``error`` says why it cannot be read."""

    source: str
    keys: int = 0
    same: int = 0
    differs: tuple[str, ...] = ()
    only_rebuilt: tuple[str, ...] = ()
    only_surviving: tuple[str, ...] = ()
    parity: str = ""
    error: str | None = None


def compare(source: str, found: Iterable[Entry], rebuilt: Mapping[str, Entry]) -> Surviving:
    """A cache that survived, beside the one that was rebuilt; values are compared, not versions."""
    theirs = {entry.key: entry.value for entry in found}
    shared = theirs.keys() & rebuilt.keys()
    differs = sorted(k for k in shared if canonical(theirs[k]) != canonical(rebuilt[k].value))
    return Surviving(
        source,
        keys=len(theirs),
        same=len(shared) - len(differs),
        differs=tuple(differs),
        only_rebuilt=tuple(sorted(rebuilt.keys() - theirs.keys())),
        only_surviving=tuple(sorted(theirs.keys() - rebuilt.keys())),
        parity=parity(theirs.items()),
    )


def survivors(layout: Layout, rebuilt: Mapping[str, Entry]) -> Iterator[Surviving]:
    """The caches that are still there, each beside the one that was folded."""
    store = opening.open_read_only(layout.state)
    if store:
        try:
            with closing(store.connection):
                yield compare("state.db", store.cache.scan(), rebuilt)
        except sqlite3.DatabaseError as error:
            yield Surviving("state.db", error=str(error))
    elif older.position(layout.state):
        yield compare("state.db", older.read(layout.state)[0].entries.values(), rebuilt)
    elif layout.state.exists():
        yield Surviving("state.db", error="it is damaged, or of another version")
    if layout.cache_file.exists():
        cache = JsonCache(layout.cache_file)
        damaged = Surviving("cache.json", error="it is damaged, or of another version")
        yield damaged if cache.was_absent else compare("cache.json", cache.scan(), rebuilt)
