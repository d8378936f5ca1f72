"""Folding the log: the whole state from its events alone."""

from __future__ import annotations

from tallybook.book import store as stores
from tallybook.book.store import Store
from tallybook.fold import MemoryTables, apply
from tallybook.layout import Layout
from tallybook.log.reader import Position, history


def fold_history(layout: Layout) -> tuple[MemoryTables, Position]:
    """The whole log folded in memory. Raises LogDamaged or FoldRefused with the place."""
    tables, position = MemoryTables(), Position()
    for event, position in history(layout):
        apply(tables, event, position.ordinal)
    return tables, position


def fold_anew(layout: Layout) -> Store:
    """A new state.db folded from the whole log; under the lock."""
    tables, position = fold_history(layout)
    return stores.write_anew(layout.state, tables, position)


def readable(layout: Layout) -> Store:
    """state.db opened for reading; where it is lost or ahead of the log, the log in memory."""
    store = stores.open_read_only(layout.state)
    if store:
        position = store.position()
        if position.segment and not stores.is_ahead(layout, position):
            return store
        store.connection.close()
    tables, position = fold_history(layout)
    return stores.in_memory(tables, position)
