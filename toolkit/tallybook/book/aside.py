"""Making a state.db: built aside or in memory, synced, and renamed in under the lock.

An old one that knows what the log does not goes to ``rebuilt/<time>/``; the newest three stay, each
as large as a state.db.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import count
from pathlib import Path

from tallybook.book import older, opening
from tallybook.book import store as stores
from tallybook.book.store import Store
from tallybook.errors import BadInput
from tallybook.fold import MemoryTables
from tallybook.layout import FOLDER_MODE, Layout
from tallybook.log.durable import at, make_folder, rename, sync, sync_folder
from tallybook.log.reader import Position
from tallybook.queue.contract import Selection

_BESIDE = ("-wal", "-shm", "-journal")
_OLD = ("state.db", *(f"state.db{suffix}" for suffix in _BESIDE), "cache.json")
_KEPT = 3


def in_memory(tables: MemoryTables, position: Position) -> Store:
    """A store in memory that holds ``tables``."""
    connection = opening.connect(":memory:")
    _fill(connection, tables, position)
    return Store(connection)


def copy_in_memory(store: Store) -> Store:
    """A store in memory with the same content, which may be changed."""
    connection = opening.connect(":memory:")
    store.connection.backup(connection)
    return Store(connection)


def in_tables(store: Store) -> MemoryTables:
    """All rows of a store in memory."""
    jobs = {job.job_id: job for job in store.queue.select(Selection(), -1)}
    entries = {entry.key: entry for entry in store.cache.scan()}
    ordering = store.queue.ordering
    locks = {lock.resource: lock for lock, _ in ordering.locks()}
    topics, buckets = store.queue.topics(), ordering.buckets()
    return MemoryTables(jobs, entries, topics, store.boot_id, locks, buckets)


def kept_tables(path: Path) -> MemoryTables | None:
    """All rows of a state that was kept, of this version or an older; None where it is gone."""
    store = opening.open_read_only(path)
    if store is None:
        return older.read(path)[0] if older.position(path) else None
    with closing(store.connection):
        return in_tables(store)


def write_anew(
    path: Path,
    tables: MemoryTables,
    position: Position,
    *,
    check: Callable[[Store], None] | None = None,
    keep: Path | None = None,
) -> Store:
    """Make ``tables`` the content of state.db: built aside, synced, renamed in; under the lock.

    ``check`` may look at the file and raise before it is swapped in; the files that stood there
    go into the folder ``keep``, where one is given.
    """
    aside = begin_aside(path)
    try:
        fill(aside, tables, position, check)
        return swap_in(path, aside, keep)
    finally:
        sweep(path)


def fill(
    aside: Path,
    tables: MemoryTables,
    position: Position,
    check: Callable[[Store], None] | None = None,
) -> None:
    """Make ``tables`` the content of a file that is built aside; ``check`` may look at it."""
    with closing(opening.connect(str(aside))) as connection:
        connection.execute("pragma synchronous = off")
        connection.execute("pragma journal_mode = off")
        _fill(connection, tables, position)
        if check:
            check(Store(connection))
        finish_aside(Store(connection))


def begin_aside(path: Path) -> Path:
    """An empty file beside state.db, to build a new one in; under the lock."""
    sweep(path)
    aside = path.with_name(f".{path.name}.{os.getpid()}.new")
    os.close(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    return aside


def sweep(path: Path) -> None:
    """Remove what a process that was ended left aside; under the lock, so it is of a dead one."""
    for left in path.parent.glob(f".{path.name}.*.new*"):
        left.unlink(missing_ok=True)


def open_aside(aside: Path) -> Store:
    """The store in a file that is built aside: nothing of it is on disk until it is swapped in."""
    connection = opening.connect(str(aside))
    connection.execute("pragma synchronous = off")
    connection.execute("pragma journal_mode = memory")
    return Store(connection)


def finish_aside(store: Store) -> None:
    """Close a file that was built aside. It is in WAL mode before it has its name, so that it
    never has a journal."""
    store.connection.execute("pragma journal_mode = wal")
    store.connection.close()


def swap_in(path: Path, aside: Path, keep: Path | None = None) -> Store:
    """Make ``aside`` the state.db; under the lock. The old files go into ``keep``, if given.

    The old -wal and -shm go first: an old WAL beside a new file silently shows old content. The
    new name needs no sync: SQLite syncs the folder before it puts the first frame into the new
    WAL, and until then the old file is as good.
    """
    _sync_file(aside)
    at("swap_written")
    if keep:
        _keep(path, keep)
    for suffix in _BESIDE:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    sync_folder(path.parent, "old wal")
    at("swap_unlinked")
    rename(aside, path, "state file")
    at("swap_renamed")
    store = opening.open_store(path)
    if store is None:
        raise BadInput(f"{path} cannot be opened right after it was written; look at the disk")
    return store


def _keep(path: Path, folder: Path) -> None:
    """A second name in ``folder`` for state.db and what is beside it: no byte of them is copied."""
    for name in (path.name, *(path.name + suffix for suffix in _BESIDE)):
        with suppress(FileNotFoundError):
            (folder / name).hardlink_to(path.with_name(name))
    sync_folder(folder, "set aside")


def begin_keeping(layout: Layout, made_at: str) -> Path:
    """Make the folder that an old state goes into, which nobody else has."""
    make_folder(layout.rebuilt, FOLDER_MODE)
    stamp = made_at.replace("-", "").replace(":", "").replace(".", "")
    for number in count(1):
        folder = layout.rebuilt / (stamp if number == 1 else f"{stamp}-{number}")
        try:
            folder.mkdir(FOLDER_MODE)
            break
        except FileExistsError:
            continue
    sync_folder(layout.rebuilt, "rebuilt")
    return folder


def drop_old(layout: Layout) -> None:
    """Remove all old states but the newest three; certificates beside them stay."""
    kept = sorted(path for path in layout.rebuilt.iterdir() if (path / _OLD[0]).exists())
    for folder in kept[:-_KEPT]:
        for name in _OLD:
            (folder / name).unlink(missing_ok=True)


def _fill(connection: sqlite3.Connection, tables: MemoryTables, position: Position) -> None:
    connection.execute(f"pragma application_id = {stores.APPLICATION_ID}")
    connection.execute(f"pragma user_version = {stores.SCHEMA_VERSION}")
    connection.execute("begin")
    for part in stores.SCHEMA:
        for statement in part.split(";\n"):
            connection.execute(statement)
    store = Store(connection)
    store.queue.add(tables.jobs.values())
    store.queue.count(stores.counted({}, tables.jobs))
    store.queue.ordering.put_locks(tables.locks.values())
    for topic, full_us in tables.buckets.items():
        store.put_bucket(topic, full_us)
    store.cache.put_all(tables.entries.values())
    for topic, status in tables.topics.items():
        store.put_topic(topic, status)
    store.set_position(position)
    connection.execute("commit")


def _sync_file(path: Path) -> None:
    fd = os.open(path, os.O_RDWR)
    try:
        sync(fd, "state file")
    finally:
        os.close(fd)
