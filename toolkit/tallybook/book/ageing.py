"""What becomes of jobs by time alone: those that expired end, those that ended long ago go.

Final jobs have no index of their own, so that a settle need not write one. A pruner walks the jobs
from the oldest on and looks at so many at a time; where it comes to jobs that are younger than
anything that is pruned, it is through.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from tallybook.book.store import Store
from tallybook.clock import Moment, to_text
from tallybook.event import Event
from tallybook.job import Job
from tallybook.settings import Settings, TopicSettings

if TYPE_CHECKING:
    from tallybook.book.book import Book

BATCH = 200
_LOOK = 1000
_REST_US = 60_000_000


def expired(store: Store, moment: Moment, settings: Settings, limit: int) -> list[Event]:
    """The events of pending jobs whose time is over."""
    over = store.know(store.queue.expired(moment, limit))
    return [job.expire(settings.topic(job.topic)) for job in over]


def pruned(store: Store, moment: Moment, jobs: Sequence[Job], settings: Settings) -> list[Event]:
    """The events of those of ``jobs`` that still may go."""
    found = store.know(store.queue.get_many([job.job_id for job in jobs]))
    events = (job.prune(settings.topic(job.topic), moment) for job in found)
    return [event for event in events if event]


def aged(
    store: Store, moment: Moment, settings: Settings, after: int, limit: int
) -> tuple[list[Job], int]:
    """Jobs that may go among the next ones, and the place of the last one looked at; 0 where no
    more can follow."""
    shortest_s = _shortest_keep_s(settings)
    if not shortest_s:
        return [], 0
    young = to_text(moment.now - timedelta(seconds=shortest_s))
    looked = store.queue.by_age(after, _LOOK)
    old: list[Job] = []
    for job in looked:
        if job.prune(settings.topic(job.topic), moment):
            old.append(job)
            if len(old) == limit:
                return old, job.ordinal
        elif job.created_at > young:
            return old, 0
    return old, looked[-1].ordinal if len(looked) == _LOOK else 0


def _shortest_keep_s(settings: Settings) -> float:
    """No job that was enqueued more lately than this is pruned; 0 where none ever is."""
    every = [TopicSettings(), *settings.topics.values()]
    kept = [keep for rules in every for keep in (rules.keep_done_s, rules.keep_dead_s) if keep]
    return min(kept, default=0.0)


def prune(book: Book, limit: int, dry_run: bool) -> list[Job]:
    """Prune at most ``limit`` jobs, in changes of at most ``BATCH``; returns them."""
    gone: list[Job] = []
    after = 0
    while len(gone) < limit:
        old, after = book.aged(after, min(BATCH, limit - len(gone)))
        if old and not dry_run:
            events = {event["job_id"] for event in book.prune_these(old)}
            old = [job for job in old if job.job_id in events]
        gone += old
        if not after:
            break
    return gone


class Ageing:
    """Expires and prunes beside the work of a book: at most one small change a step."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._after = 0
        self._due_us = 0

    def step(self) -> list[Event]:
        """End some jobs that expired; where there are none, prune some. Returns the events."""
        events = self._book.expire()
        now_us = self._book.moment().boot_us
        if events or now_us < self._due_us:
            return events
        old, self._after = self._book.aged(self._after)
        if not self._after:
            self._due_us = now_us + _REST_US
        return self._book.prune_these(old) if old else []
