"""The live cache brought to what an export and the log since say, by events of the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from tallybook.book import Book
from tallybook.book import aside as asides
from tallybook.book.caching import Write
from tallybook.cache.contract import Cache
from tallybook.clock import Clock, SystemClock
from tallybook.entry import Entry, Invalidate, Put
from tallybook.errors import LogDamaged
from tallybook.ids import canonical
from tallybook.layout import Layout, require_book
from tallybook.recover.caching import CacheAct, CacheRebuilt, Wish
from tallybook.recover.rebuild import rebuild
from tallybook.recover.steps import Steps

_BATCH = 1000
Change = tuple[Entry | None, Entry | None]


def restore_cache(
    book: Path, wish: Wish, *, steps: Steps | None = None, clock: Clock | None = None
) -> CacheRebuilt:
    """Bring the cache of ``book`` to the export of ``wish`` with the log since.

    Each key that differs is put or invalidated in the log, unless it changed meanwhile; so it holds
    for either store, and doing it twice changes nothing more. A state that cannot be folded, since
    the log is damaged or was pruned and its checkpoints are lost, is rebuilt first.
    """
    layout, clock = require_book(Path(book)), clock or SystemClock()
    _require_state(layout, clock)
    kept = asides.begin_keeping(layout, clock.moment().wall())
    act = CacheAct(layout, replace(wish, out=kept), steps or Steps(), clock)
    found, base = act.surveyed()
    known, path = act.in_memory(found, base)
    rebuilt = act.told(found, known, path)
    changes = act.overlay.changes if act.overlay else {}
    names = _apply(layout, changes, clock)
    return replace(
        rebuilt,
        put=names.count("cache.put"),
        invalidated=names.count("cache.invalidated"),
        refused=len(changes) - len(names),
    )


def _require_state(layout: Layout, clock: Clock) -> None:
    try:
        Book.open(layout.root, clock=clock).close()
    except LogDamaged:
        rebuild(layout.root, bare=True, clock=clock)


def _apply(layout: Layout, changes: Mapping[str, Change], clock: Clock) -> list[str]:
    """Make the changes, a thousand with one sync; the names of the events that were written."""
    keys, names = sorted(changes), []
    with Book.open(layout.root, clock=clock) as book:
        for at in range(0, len(keys), _BATCH):
            batch = {key: changes[key] for key in keys[at : at + _BATCH]}
            made = book.write_entries(partial(_writes, changes=batch))
            names += [event.name for event in made]
    return names


def _writes(cache: Cache, changes: Mapping[str, Change]) -> list[Write]:
    """The writes of those keys that still are as the fold found them."""
    return [
        _put(after) if after else Invalidate(key, reason="not in the export")
        for key, (before, after) in changes.items()
        if _is_same(cache.get(key), before)
    ]


def _is_same(now: Entry | None, before: Entry | None) -> bool:
    if now is None or before is None:
        return now is before
    return now.version == before.version and canonical(now.value) == canonical(before.value)


def _put(entry: Entry) -> Put:
    return Put(
        entry.key,
        entry.value,
        version=entry.version,
        etag=entry.etag,
        last_modified=entry.last_modified,
        origin="cloud",
        value_schema=entry.value_schema,
        synced_at=entry.synced_at,
    ).checked()
