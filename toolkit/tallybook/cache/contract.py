"""What every cache backend does."""

from __future__ import annotations

from typing import Protocol

from tallybook.entry import Entry


class Cache(Protocol):
    """Entries by key; changed through ``put`` and ``drop`` by the fold alone."""

    def get(self, key: str) -> Entry | None:
        """The entry of that key."""
        ...

    def put(self, entry: Entry) -> None:
        """Keep an entry, new or not."""
        ...

    def drop(self, key: str) -> None:
        """Forget an entry."""
        ...

    def select(self, limit: int) -> list[Entry]:
        """Entries by key order, at most ``limit``."""
        ...

    def size(self) -> int:
        """Number of entries."""
        ...
