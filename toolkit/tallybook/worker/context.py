"""What a handler is given besides its job: the cache, a logger, and how its lease stands."""

from __future__ import annotations

import logging
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from tallybook import payload as payloads
from tallybook.book import Book, Held
from tallybook.entry import Entry, Put
from tallybook.errors import BadInput, LeaseLost
from tallybook.job import Job
from tallybook.worker.metrics import Counters

_LOG = logging.getLogger("tallybook.job")


class CacheView:
    """The cache as a handler sees it: reads at once, writes with the settle."""

    def __init__(self, book: Book, counters: Counters) -> None:
        self._book = book
        self._counters = counters
        self.puts: list[Put] = []

    def get(self, key: str) -> Entry | None:
        """The entry of ``key`` as it stands now."""
        entry = self._book.entry(key)
        self._counters.cache_read(hit=entry is not None)
        return entry

    def put(self, key: str, value: Any, **fields: Any) -> None:
        """Write ``value`` (JSON) when this job is done. ``fields`` are those of ``entry.Put``.

        Raises BadInput at once for what cannot be kept.
        """
        payloads.checked(value)
        payloads.checked_text("cache key", key)
        for name, field_value in fields.items():
            _check_field(name, field_value)
        self.puts.append(Put(key, value, **fields))


def _check_field(name: str, value: Any) -> None:
    try:
        payloads.checked(value)
    except BadInput as error:
        raise BadInput(f"cache field {name}: {error}") from None


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
    log: JobLogger
    is_held: Callable[[], bool] = lambda: True
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def cancelled(self) -> bool:
        """Whether the lease is lost: nothing that this run does from now on will be kept."""
        return not self.is_held()

    def extend(self, lease_s: float) -> None:
        """Keep the lease for ``lease_s`` seconds from now, beyond what the heartbeat does.

        Raises LeaseLost where it is over already.
        """
        held = Held(self.job.job_id, self.job.lease_token)
        if self.book.extend([held], self.job.locked_by or "", lease_s):
            raise LeaseLost(f"job {self.job.job_id}: its lease is over; stop this run")

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
