"""Entry: one key of the cache, and what an event makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from tallybook.event import Event


@dataclass(frozen=True, slots=True)
class Entry:
    """A cached value with where it came from. ``ttl_s`` in seconds; instants as RFC 3339 text."""

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

    @property
    def value(self) -> Any:
        """The value as Python objects, parsed anew each time."""
        return orjson.loads(self.value_json)


@dataclass(frozen=True, slots=True)
class Put:
    """A write that a handler asks for; it becomes ``cache.put`` together with the settle."""

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
    )
