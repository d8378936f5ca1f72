"""What a cache write asks for and what follows: pure functions of the state.

Writes of one change see each other: a second put of a key counts its version on from the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tallybook import entry as entries
from tallybook.cache.contract import Cache
from tallybook.entry import Entry, Invalidate, Put
from tallybook.event import Event

Write = Put | Invalidate


@dataclass
class Writing:
    """The cache as one change leaves it: what it has written, over what the store has."""

    cache: Cache
    written: dict[str, Entry | None] = field(default_factory=dict)

    def events(self, writes: Iterable[Write], job_id: str | None = None) -> list[Event]:
        """The events of writes in their order; a put on an entry that has moved on since its
        ``base_version`` is refused, which is ``conflict.detected``."""
        return [event for write in writes for event in self._one(write, job_id)]

    def at_least(self, put: Put, version: int | None) -> Put:
        """``put`` with a version of at least that, and above that of the entry."""
        before = self._entry(put.key)
        following = before.version + 1 if before else 1
        return replace(put, version=max(following, version or 1))

    def _one(self, write: Write, job_id: str | None) -> list[Event]:
        if isinstance(write, Invalidate):
            return self._invalidated(write, job_id)
        before = self._entry(write.key)
        if write.has_moved_on(before):
            return [_conflict(write, before, job_id)]
        return [self._note(write.event(before, job_id))]

    def _invalidated(self, write: Invalidate, job_id: str | None) -> list[Event]:
        keys = self._all_dependents(write.key) if write.dependents else [write.key]
        there = [key for key in keys if self._entry(key)]
        # The last were found by way of the first, which therefore stay where not all may go.
        going = there[-write.limit :] if write.limit else there
        return [self._note(write.event(key, job_id)) for key in going]

    def _note(self, event: Event) -> Event:
        self.written[event["key"]] = entries.after(event)
        return event

    def _entry(self, key: str) -> Entry | None:
        return self.written[key] if key in self.written else self.cache.get(key)

    def _all_dependents(self, key: str) -> list[str]:
        """What depends on ``key``, and what depends on that; never ``key`` itself."""
        found, ahead = {key: None}, [key]
        while ahead:
            new = [one for one in self._dependents(ahead.pop()) if one not in found]
            found.update(dict.fromkeys(new))
            ahead += new
        del found[key]
        return list(found)

    def _dependents(self, key: str) -> list[str]:
        kept = [one for one in self.cache.dependents(key) if one not in self.written]
        return kept + [one for one, entry in self.written.items() if _depends(entry, key)]


def _depends(entry: Entry | None, key: str) -> bool:
    return entry is not None and key in entry.depends_on


def _conflict(put: Put, before: Entry | None, job_id: str | None) -> Event:
    stands = f"it has version {before.version}" if before else "it is not there"
    reason = f"written on version {put.base_version}, but {stands}"
    told = {"key": put.key, "job_id": job_id, "policy": "refused", "reason": reason}
    return Event("conflict.detected", told)
