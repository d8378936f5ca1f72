"""Entry: one key of the cache, what an event makes of it, and whether a reader may use it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from tallybook import payload as payloads
from tallybook.clock import Moment, from_text
from tallybook.errors import BadInput
from tallybook.event import Event, record

_LONGEST_TTL_S = 10 * 366 * 86400
_TEXTS = ("etag", "last_modified", "origin", "value_schema", "synced_at")


@record
class Entry:
    """A cached value with where it came from. ``ttl_s`` in seconds; instants as RFC 3339 text.

    ``boot_us`` and ``boot_id`` say when an entry with a TTL was written, by boot time.
    """

    key: str
    value_json: str
    version: int = 1
    base_version: int | None = None
    etag: str | None = None
    last_modified: str | None = None
    origin: str = "local"
    pending: bool = False
    ttl_s: float | None = None
    depends_on: tuple[str, ...] = ()
    value_schema: str | None = None
    synced_at: str | None = None
    job_id: str | None = None
    updated_at: str = ""
    boot_us: int = 0
    boot_id: str = ""

    @property
    def value(self) -> Any:
        """The value as Python objects, parsed anew each time."""
        return orjson.loads(self.value_json)

    def is_expired(self, moment: Moment) -> bool:
        """Whether the TTL is over.

        In the boot that the entry was written in, boot time counts, which no change of the wall
        clock moves. In a later boot wall time does; a wall clock that stands before the write
        tells no age, so the entry is expired then.
        """
        if self.ttl_s is None:
            return False
        if self.boot_id == moment.boot_id:
            return moment.boot_us - self.boot_us >= self.ttl_s * 1e6
        age_s = (moment.now - from_text(self.updated_at)).total_seconds()
        return not 0 <= age_s < self.ttl_s


class State(StrEnum):
    """What a read found."""

    FRESH = "fresh"
    EXPIRED = "expired"
    TOO_OLD = "too_old"
    ABSENT = "absent"


@record
class Read:
    """What a read of a key gives: ``entry`` is there only where the reader may use it."""

    state: State
    entry: Entry | None = None

    @property
    def value(self) -> Any:
        """The value of the entry; None where there is none to use."""
        return self.entry.value if self.entry else None


NOTHING = Read(State.ABSENT)


def read(
    entry: Entry,
    moment: Moment,
    at_least_version: int | None = None,
    *,
    allow_expired: bool = False,
) -> Read:
    """What a reader gets who asked for at least that version; an expired entry only if allowed."""
    if at_least_version is not None and entry.version < at_least_version:
        return Read(State.TOO_OLD)
    if entry.is_expired(moment):
        return Read(State.EXPIRED, entry if allow_expired else None)
    return Read(State.FRESH, entry)


@dataclass(frozen=True, slots=True)
class Put:
    """A write; that of a handler becomes ``cache.put`` together with the settle.

    With a ``base_version`` it is made only where the entry has that version, or is absent for 0.
    """

    key: str
    value: Any
    version: int | None = None
    base_version: int | None = None
    etag: str | None = None
    last_modified: str | None = None
    origin: str = "local"
    pending: bool = False
    ttl_s: float | None = None
    depends_on: tuple[str, ...] = ()
    value_schema: str | None = None
    synced_at: str | None = None

    def checked(self) -> Put:
        """This write. Raises BadInput that names the field which cannot be kept."""
        if not payloads.checked_text("cache key", self.key):
            raise BadInput("cache key: give a key that is not empty")
        payloads.checked(self.value)
        for name in _TEXTS:
            _check_text(name, getattr(self, name))
        if self.origin not in ("local", "cloud"):
            raise BadInput(f"cache field origin: {self.origin!r} is neither local nor cloud")
        if self.ttl_s is not None and not 0 < self.ttl_s <= _LONGEST_TTL_S:
            raise BadInput(f"cache field ttl_s: {self.ttl_s} s; use more than 0, up to 10 years")
        for name, least in (("version", 1), ("base_version", 0)):
            _check_number(name, getattr(self, name), least)
        if isinstance(self.depends_on, str):
            raise BadInput("cache field depends_on: give a list of keys, not one text")
        for key in self.depends_on:
            _check_text("depends_on", key)
        return self

    def has_moved_on(self, before: Entry | None) -> bool:
        """Whether the entry is no longer the one that this write was made on."""
        version = before.version if before else 0
        return self.base_version is not None and self.base_version != version

    def event(self, before: Entry | None, job_id: str | None = None) -> Event:
        """The event of this write over the entry ``before``; the version goes up by one."""
        following = before.version + 1 if before else 1
        return Event(
            "cache.put",
            {
                "key": self.key,
                "value": self.value,
                "version": following if self.version is None else self.version,
                "base_version": self.base_version,
                "etag": self.etag,
                "last_modified": self.last_modified,
                "origin": self.origin,
                "pending": self.pending or None,
                "ttl_s": self.ttl_s,
                "depends_on": list(self.depends_on) or None,
                "value_schema": self.value_schema,
                "synced_at": self.synced_at,
                "job_id": job_id,
            },
        )


def _check_text(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, str):
        raise BadInput(f"cache field {name}: {type(value).__name__} is no text")
    payloads.checked_text(f"cache field {name}", value)


def _check_number(name: str, value: Any, least: int) -> None:
    if value is None:
        return
    if type(value) is not int or not least <= value <= payloads.LARGEST_INTEGER:
        raise BadInput(f"cache field {name}: {value!r}; use a whole number from {least} up")


@dataclass(frozen=True, slots=True)
class Invalidate:
    """Forget ``key``; with ``dependents`` not it, but every entry that depends on it, of those
    ``limit`` at most."""

    key: str
    dependents: bool = False
    reason: str | None = None
    limit: int | None = None

    def checked(self) -> Invalidate:
        """This wish. Raises BadInput for a key or a reason that is no clean text, or no limit."""
        if self.limit is not None and self.limit < 1:
            raise BadInput(f"limit is {self.limit}: use a number from 1 up")
        payloads.checked_text("cache key", self.key)
        payloads.checked_text("reason", self.reason)
        return self

    def event(self, key: str, job_id: str | None = None) -> Event:
        """The event of one entry being forgotten."""
        because = f"depends on {self.key}" if self.dependents else None
        return Event(
            "cache.invalidated", {"key": key, "reason": self.reason or because, "job_id": job_id}
        )


def after(event: Event) -> Entry | None:
    """The entry after an event of its key; None once it is invalidated."""
    if event.name == "cache.invalidated":
        return None
    return Entry(
        key=event["key"],
        value_json=orjson.dumps(event.get("value")).decode(),
        version=event.get("version", 1),
        base_version=event.get("base_version"),
        etag=event.get("etag"),
        last_modified=event.get("last_modified"),
        origin=event.get("origin", "local"),
        pending=bool(event.get("pending", False)),
        ttl_s=event.get("ttl_s"),
        depends_on=tuple(event.get("depends_on") or ()),
        value_schema=event.get("value_schema"),
        synced_at=event.get("synced_at"),
        job_id=event.get("job_id"),
        updated_at=event.occurred_at,
        boot_us=event.boot_us if event.get("ttl_s") is not None else 0,
        boot_id=event.boot_id if event.get("ttl_s") is not None else "",
    )
