"""Keep-latest: a job that supersedes the pending ones of its ordering key, in the same change.

Nothing is lost silently: each is cancelled by an event that names the job in its place, its
payload stays in the log, and the receipt names it. A leased job runs on.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from tallybook.book.store import Store
from tallybook.event import Event
from tallybook.order import Line


class Latest:
    """The jobs of one enqueue as they come, and which are superseded: of them, and of the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._coming: dict[Line, list[dict[str, Any]]] = defaultdict(list)
        self._gone: set[Line] = set()

    def superseded_by(self, new: Event) -> list[Event]:
        """The events of the jobs that ``new`` takes the place of, oldest first; it is noted."""
        fields = new.fields
        line = (fields["topic"], fields.get("ordering_key") or "")
        if not line[1]:
            return []
        named = self._named(line) if fields.get("keep_latest") else []
        self._coming[line].append(
            {name: fields.get(name) for name in ("job_id", "topic", "correlation_id")}
        )
        told = {"reason": "superseded", "superseded_by": fields["job_id"]}
        return [Event("job.cancelled", job | told) for job in named]

    def _named(self, line: Line) -> list[dict[str, Any]]:
        """The pending jobs of a line that were not superseded yet."""
        before: list[dict[str, Any]] = []
        if line not in self._gone:
            ordering = self._store.queue.ordering
            before = [job.named() for job in self._store.know(ordering.superseded(line))]
        self._gone.add(line)
        return before + self._coming.pop(line, [])
