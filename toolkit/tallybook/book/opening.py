"""The file state.db: opened, recognised, and what SQLite or the disk refuses in our words."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tallybook.book import store as stores
from tallybook.book.store import Store
from tallybook.errors import BadInput, NoRoom, TallybookError, is_no_room
from tallybook.layout import Layout
from tallybook.log.marks import Mark, known_marks
from tallybook.log.reader import Position, reaches

_CHECKPOINT_PAGES = 4000  # 16 MiB of WAL for two syncs; SQLite's 1,000 are the work of 0.1 s
_SMALL_PAGES = 1000
_SMALL_DISK = 1024**3
"""On a disk below this a WAL of 16 MiB could take the room that its own checkpoint needs."""
_NOT_NOW = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
)
_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE)
"""What SQLite says where the disk, a quota or the largest size of a file takes no more."""


def open_store(path: Path) -> Store | None:
    """The store at ``path``; None where it is lost or no state of ours. Raises BadInput where
    another program's database is in the way, sqlite3.OperationalError where it cannot be opened
    now: a full disk is no reason to fold anew.
    """
    if not _is_readable(path):
        return None
    connection = connect(f"{path.resolve().as_uri()}?mode=rw")
    try:
        _require_ours(connection, path)
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        connection.execute(f"pragma journal_size_limit = {64 * 1024 * 1024}")
        connection.execute(f"pragma wal_autocheckpoint = {_checkpoint_pages(path)}")
        return Store(connection)
    except _Unusable:
        connection.close()
        return None
    except sqlite3.DatabaseError as error:
        connection.close()
        if error.sqlite_errorcode & 0xFF in _NOT_NOW and not is_damage(error):
            raise
        return None
    except BadInput:
        connection.close()
        raise


def open_read_only(path: Path) -> Store | None:
    """As ``open_store`` with no right to write; leaves no file beside ``path``."""
    if not _is_readable(path):
        return None
    connection = connect_to_read(path)
    try:
        _require_ours(connection, path)
        return Store(connection)
    except (sqlite3.DatabaseError, _Unusable):
        connection.close()
        return None


def connect_to_read(path: Path) -> sqlite3.Connection:
    """A connection with no right to write; leaves no file beside ``path``."""
    wal = path.with_name(path.name + "-wal")
    frozen = "" if wal.exists() else "&immutable=1"
    return connect(f"{path.resolve().as_uri()}?mode=ro{frozen}")


class _Unusable(Exception):
    """The file is an SQLite database, but holds no usable state."""


def _is_readable(path: Path) -> bool:
    """Whether there is a file; raises PermissionError, which names it, where it may not be read.

    It is not opened: a close would drop the locks that SQLite has on it in this process, and
    another might then take the WAL away.
    """
    if not path.exists():
        return False
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return True


def _require_ours(connection: sqlite3.Connection, path: Path) -> None:
    (application_id,) = connection.execute("pragma application_id").fetchone()
    (tables,) = connection.execute("select count(*) from sqlite_schema").fetchone()
    (version,) = connection.execute("pragma user_version").fetchone()
    if application_id != stores.APPLICATION_ID:
        if tables:
            raise BadInput(f"{path} is a database of another program; move it out of the book")
        raise _Unusable
    if version != stores.SCHEMA_VERSION:
        raise _Unusable


def connect(uri: str) -> sqlite3.Connection:
    """A connection as every part of a store uses it."""
    connection = sqlite3.connect(
        uri, uri=True, isolation_level=None, check_same_thread=False, timeout=5
    )
    connection.execute("pragma temp_store = memory")
    return connection


def _checkpoint_pages(path: Path) -> int:
    disk = os.statvfs(path)
    is_small = disk.f_blocks * disk.f_frsize < _SMALL_DISK
    return _SMALL_PAGES if is_small else _CHECKPOINT_PAGES


def open_fitting(layout: Layout) -> tuple[Store | None, Position]:
    """As ``open_store``, None also where it is ahead of the log; and the position it had."""
    store = open_store(layout.state)
    position = store.position() if store else Position()
    if store and is_ahead(layout, position):
        store.connection.close()
        return None, position
    return store, position


def is_ahead(layout: Layout, position: Position) -> bool:
    """Whether the state at ``position`` knows more than the log, or less than it still has."""
    return not reaches(layout, position)


def marks(layout: Layout) -> list[Mark]:
    """How far state.db, checkpoints and metrics/latest.json say that the log once reached."""
    found = known_marks(layout)
    store = open_read_only(layout.state)
    if store:
        at = store.position()
        store.connection.close()
        if at.writer:
            found.append(Mark("state.db", at.writer, at.seq, at.hash.hex()))
    return found


@contextmanager
def told(path: Path) -> Iterator[None]:
    """What SQLite or the disk cannot do now, as an error of ours: NoRoom or TallybookError."""
    try:
        yield
    except (sqlite3.OperationalError, OSError) as error:
        raise as_ours(error, path) from error


def as_ours(error: sqlite3.OperationalError | OSError, path: Path) -> TallybookError:
    """What SQLite or the disk cannot do now, in our words."""
    if isinstance(error, sqlite3.OperationalError):
        kind = NoRoom if error.sqlite_errorcode in _FULL else TallybookError
        return kind(f"{path}: {error}; nothing was changed")
    kind = NoRoom if is_no_room(error) else TallybookError
    kind = BadInput if isinstance(error, PermissionError) else kind
    return kind(f"{error.filename or path}: {error.strerror}; nothing was changed")


def lagging(path: Path) -> NoRoom:
    """The state at ``path`` cannot be brought to the end of the log."""
    return NoRoom(
        f"{path}: cannot be written and lags behind the log, which has all; make room on the disk"
    )


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether SQLite says that the files themselves are damaged.

    A short read is one: others still map the -shm of a -wal that was deleted.
    """
    code = getattr(error, "sqlite_errorcode", 0)
    damaged = code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
    return damaged or code == sqlite3.SQLITE_IOERR_SHORT_READ
