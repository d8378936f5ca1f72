"""state.db: jobs, cache, topics and the position in one SQLite file, as the tables of the fold."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from tallybook import statements
from tallybook.book.standing import Touched
from tallybook.cache import sqlite as cache_sqlite
from tallybook.cache.sqlite import SqliteCache
from tallybook.clock import Moment
from tallybook.entry import Entry
from tallybook.errors import FoldRefused
from tallybook.job import Job, Status
from tallybook.log.durable import at
from tallybook.log.reader import Position
from tallybook.order import Lock
from tallybook.queue import sqlite as queue_sqlite
from tallybook.queue.sqlite import SqliteQueue

APPLICATION_ID = 0x54414C59  # "TALY"
SCHEMA_VERSION = 7
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

    def knows_boot(self, moment: Moment) -> bool:
        """Whether the leases and waits of the state are of this boot; else the next change ends
        those leases, and counts those waits on."""
        return self.boot_id == moment.boot_id

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
