"""state.db: jobs, cache, topics and the position in one SQLite file, as the tables of the fold."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tallybook import statements
from tallybook.book.standing import Touched
from tallybook.cache import sqlite as cache_sqlite
from tallybook.cache.sqlite import SqliteCache
from tallybook.entry import Entry
from tallybook.errors import BadInput, FoldRefused, NoRoom, TallybookError
from tallybook.job import Job, Status
from tallybook.layout import Layout
from tallybook.log.durable import at
from tallybook.log.marks import Mark, known_marks
from tallybook.log.reader import Position, reaches
from tallybook.order import Lock
from tallybook.queue import sqlite as queue_sqlite
from tallybook.queue.sqlite import SqliteQueue

APPLICATION_ID = 0x54414C59  # "TALY"
SCHEMA_VERSION = 7
_CHECKPOINT_PAGES = 4000  # 16 MiB of WAL for two syncs; SQLite's 1,000 are the work of 0.1 s
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
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
_LEASED = Status.LEASED.value
_SQL = statements.load("tallybook.book", "store.sql")
SCHEMA = (_SQL["schema"], queue_sqlite.SCHEMA, cache_sqlite.SCHEMA)


class Store:
    """An open state.db (or a copy in memory). ``boot_id`` is that of the last applied event.

    ``end`` is how far the log was applied when this object last changed it; None where it cannot
    say. For as long as the log ends there, what it knows of leased jobs and entries is so.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.cache = SqliteCache(connection)
        self._queue = SqliteQueue(connection)
        self._known: dict[str, Job | None] = {}
        self._held: dict[str, Job] = {}
        self._before: dict[str, Job | None] = {}
        self._changed: dict[str, Job] = {}
        self._touched = Touched(self._queue.ordering)
        self.has_news = False
        self.boot_id = self.position().boot_id
        self.is_behind = False
        self.end: Position | None = None
        self.ends_at: Callable[[Position], bool] = lambda _: False

    def sync_commits(self) -> None:
        """Put each change on disk with its COMMIT: state.db has what the log withholds."""
        self.connection.execute("pragma synchronous = full")

    @property
    def queue(self) -> SqliteQueue:
        """The rows of jobs, with all that this change has done to them so far."""
        self._flush()
        return self._queue

    def position(self) -> Position:
        """How far the log is applied, by whatever process; ``boot_id`` is that place's from now."""
        row = self.connection.execute(_SQL["position"]).fetchone()
        position = Position._make(row) if row else Position()
        self.boot_id = position.boot_id
        return position

    def set_position(self, position: Position) -> None:
        """Say that the log is applied up to ``position``; all rows of the change are written."""
        self._flush()
        self.connection.execute(_SQL["set_position"], position)
        self.end = position

    def certain_end(self) -> Position | None:
        """``end``, where ``ends_at`` knows that nobody has changed anything since."""
        return self.end if self.end and not self.is_behind and self.ends_at(self.end) else None

    def forget(self) -> None:
        """Others may have changed the state since: what is known of it is read again."""
        self.end = None
        self._known.clear()
        self._held.clear()

    def begin(self) -> None:
        """BEGIN IMMEDIATE: nobody else changes the state until ``commit`` or ``roll_back``."""
        self.connection.execute("begin immediate")

    def commit(self) -> None:
        """COMMIT. By now the events are on disk: if it fails, the change has happened all the
        same, ``is_behind`` is set, and the next change replays it from the log."""
        self._touched.forget()
        at("before_commit")
        self.is_behind = True
        with suppress(sqlite3.DatabaseError):
            self.connection.execute("commit")
            self.is_behind = False
        if self.connection.in_transaction:
            self.connection.execute("rollback")
        self._keep_leased()
        at("after_commit")

    def _keep_leased(self) -> None:
        for job_id, job in self._known.items():
            if job and job.status == _LEASED:
                self._held[job_id] = job
            else:
                self._held.pop(job_id, None)
        self._known.clear()

    def roll_back(self) -> None:
        """ROLLBACK: nothing was changed."""
        self.forget()
        self._touched.forget()
        self._before.clear()
        self._changed.clear()
        if self.connection.in_transaction:
            self.connection.execute("rollback")
        self.boot_id = self.position().boot_id

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """``begin`` … ``commit``; anything raised rolls back."""
        self.begin()
        try:
            yield
            self._flush()
        except BaseException:
            self.roll_back()
            raise
        self.commit()

    def took_news(self) -> bool:
        """Whether jobs may be claimed now that others stood in the way of; asked once."""
        told, self.has_news = self.has_news, False
        return told

    def know(self, jobs: list[Job]) -> list[Job]:
        """Remember rows that were just read, so that this change need not read them again."""
        self._known.update((job.job_id, job) for job in jobs)
        return jobs

    def know_all(self, job_ids: Iterable[str]) -> None:
        """Read the jobs of those ids at once, but for those that are known."""
        unknown = [job_id for job_id in job_ids if job_id not in self._held]
        if len(unknown) > 1:
            self.know(self.queue.get_many(unknown))

    def _flush(self) -> None:
        """Write the rows of jobs that this change has touched, each once, and those of the jobs
        whose turn it is now."""
        if not (self._changed or self._touched):
            return
        before, changed = self._before, self._changed
        old = [(old, changed[job_id]) for job_id, old in before.items() if old]
        if old:
            self._queue.change(old)
        if self._touched:
            self._move()
        if len(old) < len(before):
            self._add([changed[job_id] for job_id, old in before.items() if old is None])
        self._queue.count(counted(before, changed))
        before.clear()
        changed.clear()

    def _move(self) -> None:
        """Let jobs take their places in lines and before resources: new ones in memory."""
        new = [job_id for job_id, old in self._before.items() if old is None]
        for moved_of in (self._touched.moved_in_lines, self._touched.moved_of_resources):
            moved = moved_of(self._changed[job_id] for job_id in new)
            if moved:
                self._place(moved)

    def _place(self, moved: list[Job]) -> None:
        self.has_news = True
        self._known.update((job.job_id, job) for job in moved)
        fresh = {job.job_id: job for job in moved if self._before.get(job.job_id, job) is None}
        self._changed.update(fresh)
        if len(fresh) < len(moved):
            self._queue.place(job for job in moved if job.job_id not in fresh)

    def _add(self, new: list[Job]) -> None:
        try:
            self._queue.add(new)
        except sqlite3.IntegrityError as error:
            raise FoldRefused(
                f"job.enqueued of a job that is there already, among {new[0].job_id} to "
                f"{new[-1].job_id}: {error}"
            ) from None

    # the tables of the fold; rows of jobs are written once, at the end of a change

    def job(self, job_id: str) -> Job | None:
        """The job of that id, if there is one."""
        if job_id not in self._known:
            self._known[job_id] = self._held.get(job_id) or self._queue.get(job_id)
        return self._known[job_id]

    def put_job(self, job: Job) -> None:
        """Keep the new state of a job."""
        job_id = job.job_id
        if job_id not in self._changed:
            self._before[job_id] = self._known.get(job_id)
        self._known[job_id] = self._changed[job_id] = job

    def drop_job(self, job_id: str) -> None:
        """Forget a pruned job."""
        job = self.job(job_id)
        if job:
            self.queue.drop(job_id)
            self._queue.count({(job.topic, job.status): (-1, -job.payload_bytes)})
        self._known[job_id] = None

    def timed_jobs(self) -> Iterable[Job]:
        """The open jobs that boot time is kept of: leased, waiting for an instant, or to expire."""
        return self.know(list(self.queue.timed()))

    def put_entry(self, entry: Entry) -> None:
        """Keep the new state of a cache entry."""
        self.cache.put(entry)

    def drop_entry(self, key: str) -> None:
        """Forget an invalidated entry."""
        self.cache.drop(key)

    def put_topic(self, topic: str, status: str) -> None:
        """Keep whether a topic is active or paused."""
        self.queue.put_topic(topic, status)

    def touch(self, job: Job) -> None:
        """Look who is next of the ordering key and the resource of a job, before the next
        question."""
        self._touched.touch(job)

    def lock(self, resource: str) -> Lock | None:
        """Who has a resource."""
        return self._touched.lock(resource)

    def know_locks(self, resources: list[str]) -> None:
        """Remember who has ``resources``, so that this change need not ask for each."""
        self._touched.know(resources)

    def put_lock(self, lock: Lock) -> None:
        """Keep who has a resource."""
        self._touched.put_lock(lock.resource, lock)

    def drop_lock(self, resource: str, job_id: str) -> None:
        """Nobody has a resource any more that this job had."""
        lock = self._touched.lock(resource)
        if lock and lock.job_id == job_id:
            self._touched.put_lock(resource, None)

    def put_bucket(self, topic: str, full_us: int) -> None:
        """Keep when the bucket of a topic is full again, in µs of boot time."""
        self._queue.ordering.put_bucket(topic, full_us)

    def drop_buckets(self) -> None:
        """All buckets are full."""
        self._queue.ordering.drop_buckets()


def counted(
    before: Mapping[str, Job | None], changed: Mapping[str, Job]
) -> dict[tuple[str, str], tuple[int, int]]:
    """How the numbers of jobs and the bytes of their payloads change, by topic and status."""
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for job_id, job in changed.items():
        old = before.get(job_id)
        _sum(sums, job, 1)
        if old:
            _sum(sums, old, -1)
    return sums


def _sum(sums: dict[tuple[str, str], tuple[int, int]], job: Job, sign: int) -> None:
    key = (job.topic, job.status)
    number, size = sums.get(key, (0, 0))
    sums[key] = (number + sign, size + sign * job.payload_bytes)


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
        connection.execute(f"pragma wal_autocheckpoint = {_CHECKPOINT_PAGES}")
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
    kind = NoRoom if error.errno in NO_ROOM else TallybookError
    kind = BadInput if isinstance(error, PermissionError) else kind
    return kind(f"{error.filename or path}: {error.strerror}; nothing was changed")


def open_read_only(path: Path) -> Store | None:
    """As ``open_store`` with no right to write; leaves no file beside ``path``."""
    if not _is_readable(path):
        return None
    wal = path.with_name(path.name + "-wal")
    mode = "mode=ro" if wal.exists() else "immutable=1"
    connection = connect(f"{path.resolve().as_uri()}?{mode}")
    try:
        _require_ours(connection, path)
        return Store(connection)
    except (sqlite3.DatabaseError, _Unusable):
        connection.close()
        return None


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


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether SQLite says that the files themselves are damaged.

    A short read is one: others still map the -shm of a -wal that was deleted.
    """
    code = getattr(error, "sqlite_errorcode", 0)
    damaged = code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
    return damaged or code == sqlite3.SQLITE_IOERR_SHORT_READ


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


class _Unusable(Exception):
    """The file is an SQLite database, but holds no usable state."""


def connect(uri: str) -> sqlite3.Connection:
    """A connection as every part of a store uses it."""
    connection = sqlite3.connect(
        uri, uri=True, isolation_level=None, check_same_thread=False, timeout=5
    )
    connection.execute("pragma temp_store = memory")
    return connection


def _require_ours(connection: sqlite3.Connection, path: Path) -> None:
    (application_id,) = connection.execute("pragma application_id").fetchone()
    (tables,) = connection.execute("select count(*) from sqlite_schema").fetchone()
    (version,) = connection.execute("pragma user_version").fetchone()
    if application_id != APPLICATION_ID:
        if tables:
            raise BadInput(f"{path} is a database of another program; move it out of the book")
        raise _Unusable
    if version != SCHEMA_VERSION:
        raise _Unusable
