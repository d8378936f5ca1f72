"""What a handler is given besides its job: the cache, a logger, and how its lease stands."""

from __future__ import annotations

import logging
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tallybook import payload as payloads
from tallybook.book import Book, Held
from tallybook.book.caching import Write
from tallybook.entry import Entry, Invalidate, Put, Read
from tallybook.errors import BadInput, LeaseLost, VersionConflict
from tallybook.job import Job
from tallybook.worker.metrics import Counters

_LONGEST_LEASE_S = 86400
_LOG = logging.getLogger("tallybook.job")


class CacheView:
    """The cache as a handler sees it: reads at once, writes with the settle.

    What this run writes is read once its job is done, by this run too.
    """

    def __init__(self, book: Book, counters: Counters, job: Job) -> None:
        self._book = book
        self._counters = counters
        self._job = job
        self.writes: list[Write] = []

    def get(
        self, key: str, *, at_least_version: int | None = None, allow_expired: bool = False
    ) -> Read:
        """The entry of ``key`` as it stands now, with its state; its ``entry`` is None where it is
        absent, older than ``at_least_version``, or expired and that not allowed."""
        found = self._book.read_entry(
            key, at_least_version=at_least_version, allow_expired=allow_expired
        )
        self._counters.cache_read(hit=found.entry is not None)
        return found

    def get_or(
        self,
        key: str,
        source: Callable[[], Any],
        *,
        at_least_version: int | None = None,
        **fields: Any,
    ) -> Entry:
        """The entry of ``key``; where it may not be used, what ``source`` gives.

        That is written at once, not with the settle: it is true whatever becomes of this job, and
        other threads wait for it, so that ``source`` is called once.
        """
        found = self.get(key, at_least_version=at_least_version).entry
        if found:
            return found
        return self._book.get_or(
            key, source, at_least_version=at_least_version, job_id=self._job.job_id, **fields
        )

    def put(self, key: str, value: Any, **fields: Any) -> None:
        """Write ``value`` (JSON) when this job is done. ``fields`` are those of ``entry.Put``.

        Raises BadInput at once for what cannot be kept, VersionConflict where the entry no longer
        has the ``base_version``. Where it moves on only later, the job is done, and
        ``conflict.detected`` stands in place of the write.
        """
        put = Put(key, value, **fields).checked()
        before = self._book.entry(key) if put.base_version is not None else None
        if put.has_moved_on(before):
            raise VersionConflict(
                f"cache key {key}: written on version {put.base_version}, but it has version "
                f"{before.version if before else 0}; read it again"
            )
        self.writes.append(put)

    def invalidate(self, key: str, *, reason: str | None = None) -> None:
        """Forget the entry of ``key`` when this job is done."""
        self.writes.append(Invalidate(key, reason=reason).checked())

    def invalidate_dependents(self, key: str, *, reason: str | None = None) -> None:
        """Forget every entry that depends on ``key``, and what depends on those, when this job is
        done."""
        self.writes.append(Invalidate(key, dependents=True, reason=reason).checked())


class JobLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger whose lines begin with the job and, where there is one, the correlation id."""

    def __init__(self, job: Job) -> None:
        names = {"job_id": job.job_id, "correlation_id": job.correlation_id}
        super().__init__(_LOG, names)
        self._prefix = " ".join(name for name in names.values() if name)

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        """The line with its prefix; the names are on the record too."""
        kwargs["extra"] = {**(self.extra or {}), **kwargs.get("extra", {})}
        return f"[{self._prefix}] {msg}", kwargs


@dataclass
class Context:
    """What a handler may use besides its job."""

    job: Job
    book: Book
    cache: CacheView
    is_held: Callable[[], bool] = lambda: True
    extended: Callable[[int], None] = lambda _: None
    notes: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def log(self) -> JobLogger:
        """A logger whose lines begin with the job."""
        return JobLogger(self.job)

    @property
    def cancelled(self) -> bool:
        """Whether the lease is lost: nothing that this run does from now on will be kept."""
        return not self.is_held()

    def extend(self, lease_s: float) -> None:
        """Keep the lease for ``lease_s`` seconds from now, beyond what the heartbeat does.

        Raises LeaseLost where it is over already.
        """
        if not 0 < lease_s <= _LONGEST_LEASE_S:
            raise BadInput(f"extend({lease_s!r}): use up to {_LONGEST_LEASE_S} s")
        held = Held(self.job.job_id, self.job.lease_token)
        now_us = self.book.moment().boot_us
        if self.book.extend([held], self.job.locked_by or "", lease_s):
            raise LeaseLost(f"job {self.job.job_id}: its lease is over; stop this run")
        self.extended(now_us + round(lease_s * 1_000_000))

    def note(
        self,
        *,
        http_status: int | None = None,
        endpoint: str | None = None,
        replayed: bool | None = None,
    ) -> None:
        """Facts of this run for its event: how the server answered, where, and whether it had
        known the key already."""
        for name, value, kind in (("http_status", http_status, int), ("endpoint", endpoint, str)):
            if value is not None and not isinstance(value, kind):
                raise BadInput(f"note: {name} is {type(value).__name__}, not {kind.__name__}")
        self.notes |= fit_facts(http_status, endpoint, replayed)


def fit_facts(http_status: Any, endpoint: Any, replayed: Any) -> dict[str, Any]:
    """Facts of a run as an event can carry them; what is none is left out."""
    facts: dict[str, Any] = {}
    if isinstance(http_status, int):
        facts["http_status"] = int(http_status)
    if isinstance(endpoint, str):
        facts["endpoint"] = payloads.clean(endpoint)
    if replayed is not None:
        facts["replayed"] = bool(replayed)
    return facts
