"""Folding the log: the whole state from its events, begun at the newest good checkpoint."""

from __future__ import annotations

import logging
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tallybook.book import aside as asides
from tallybook.book import checkpoints, older, opening
from tallybook.book.store import Store
from tallybook.errors import FoldRefused, LogDamaged
from tallybook.fold import MemoryTables, apply
from tallybook.layout import Layout
from tallybook.log import anchor as anchors
from tallybook.log.reader import Position, has_more, history, reaches

log = logging.getLogger("tallybook.book")
_COMMIT_S = 0.25


def fold_history(layout: Layout) -> tuple[MemoryTables, Position]:
    """The whole log folded in memory from its start. Raises LogDamaged or FoldRefused with the
    place, and LogDamaged where its start was pruned."""
    require_start(layout)
    tables, position = MemoryTables(), Position()
    for event, position in history(layout):
        apply(tables, event, position.ordinal)
    return tables, position


def require_start(layout: Layout) -> None:
    """Raises LogDamaged where the log cannot be folded from its start, since that was pruned."""
    anchor = anchors.read(layout)
    if anchor:
        raise LogDamaged(
            f"{layout.log}: pruned up to seq {anchor.position.seq} of writer "
            f"{anchor.position.writer[:8]}, and no checkpoint is good; put the files of "
            f"{layout.checkpoints} back from a backup"
        )


def fold_anew(layout: Layout, keep: Path | None = None) -> Store:
    """A new state.db from that of an older version, else from the newest good checkpoint, and the
    log after it, else from the whole log; under the lock. The old files go into the folder
    ``keep``, if given. Raises LogDamaged or FoldRefused with the place."""
    for kept in _kept(layout):
        aside = asides.begin_aside(layout.state)
        try:
            _fold_after(layout, kept, aside)
            return asides.swap_in(layout.state, aside, keep)
        except (LogDamaged, FoldRefused, sqlite3.DatabaseError) as error:
            log.warning("%s was passed over: %s", kept, error)
        finally:
            asides.sweep(layout.state)
    tables, position = fold_history(layout)
    return asides.write_anew(layout.state, tables, position, keep=keep)


def _kept(layout: Layout) -> Iterator[Path]:
    """The files that a fold can begin with, the furthest first."""
    upgraded = older.position(layout.state) if layout.state.exists() else None
    if upgraded and reaches(layout, upgraded):
        yield layout.state
    for checkpoint in checkpoints.good(layout):
        yield checkpoint.path


def _fold_after(layout: Layout, kept: Path, aside: Path) -> None:
    """Make ``aside`` the state in the file ``kept`` with the log after it applied."""
    if older.position(kept):
        asides.fill(aside, *older.read(kept))
    else:
        shutil.copyfile(kept, aside)
    store = asides.open_aside(aside)
    try:
        _apply_after(layout, store)
        asides.finish_aside(store)
    finally:
        store.connection.close()


def _apply_after(layout: Layout, store: Store) -> None:
    position = store.position()
    store.connection.execute("begin")
    for event, position in history(layout, position):  # noqa: B020 - the walk goes on
        apply(store, event, position.ordinal)
    store.set_position(position)
    store.queue  # noqa: B018 - what was applied is written
    store.connection.execute("commit")


def fold_what_is_left(layout: Layout, made_at: str) -> Store:
    """``fold_anew`` of a log that lost what state.db knew. The old state is kept in
    ``rebuilt/<made_at>/``, since no other place may have that, and a warning says where."""
    keep = asides.begin_keeping(layout, made_at)
    folded = fold_anew(layout, keep)
    asides.drop_old(layout)
    log.warning(
        "%s knew what the log has lost: it was folded anew and the old one is kept; "
        "'tallybook rebuild --from %s' takes over what it knew",
        layout.state,
        keep / layout.state.name,
    )
    return folded


def readable(layout: Layout) -> Store:
    """state.db opened for reading, as far as the log goes; where it is lost or ahead of the log,
    the log in memory."""
    store = opening.open_read_only(layout.state)
    if store:
        position = store.position()
        if position.segment and not opening.is_ahead(layout, position):
            return caught_up(layout, store)
        store.connection.close()
    return in_memory(layout)


def caught_up(layout: Layout, store: Store) -> Store:
    """The store where it has all of the log, else a copy in memory with the rest applied.

    A living process commits what it has just written: it is given a moment.
    """
    deadline_s = time.monotonic() + _COMMIT_S
    while has_more(layout, store.position()):
        if time.monotonic() > deadline_s:
            with closing(store.connection):
                copy = asides.copy_in_memory(store)
            _apply_after(layout, copy)
            return copy
        time.sleep(_COMMIT_S / 50)
    return store


def in_memory(layout: Layout) -> Store:
    """The whole log folded in memory, begun at the newest good checkpoint."""
    for folded in from_checkpoints(layout):
        return folded
    tables, position = fold_history(layout)
    return asides.in_memory(tables, position)


def from_checkpoints(layout: Layout) -> Iterator[Store]:
    """Each good checkpoint with the log after it, in memory, the newest first."""
    for checkpoint in checkpoints.good(layout):
        store = _in_memory(checkpoint.path)
        if store:
            try:
                _apply_after(layout, store)
            except (LogDamaged, FoldRefused):
                store.connection.close()
                continue
            yield store


def _in_memory(path: Path) -> Store | None:
    """A copy of a kept state; None where it was removed meanwhile."""
    kept = opening.open_read_only(path)
    if kept is None:
        return asides.in_memory(*older.read(path)) if older.position(path) else None
    with closing(kept.connection):
        return asides.copy_in_memory(kept)
