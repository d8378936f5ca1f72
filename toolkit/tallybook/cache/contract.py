"""What every cache backend does."""

from __future__ import annotations

from collections.abc import Iterator
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

    def dependents(self, key: str) -> list[str]:
        """The keys of the entries that depend on ``key`` themselves, in order."""
        ...

    def scan(self, prefix: str = "") -> Iterator[Entry]:
        """Entries by key, those whose key begins with ``prefix``."""
        ...

    def size(self) -> int:
        """Number of entries."""
        ...
