"""Telling the waiting workers of a book, in whatever process, that there is something to claim."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from tallybook.event import Event
from tallybook.layout import FILE_MODE

NEWS = frozenset(
    (
        "job.enqueued",
        "job.retry_scheduled",
        "job.snoozed",
        "job.lease_expired",
        "job.released",
        "job.requeued",
        "topic.resumed",
    )
)

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC


def tell(path: str, events: Iterable[Event], has_more: bool = False) -> None:
    """Open and close the file at ``path`` where one of ``events`` leaves something to claim, or
    ``has_more`` says so.

    Who watches the file is woken by the close. A call that is lost costs a second at most: no
    worker waits longer than that without looking.
    """
    if has_more or not NEWS.isdisjoint([event.name for event in events]):
        with suppress(OSError):
            os.close(os.open(path, _FLAGS, FILE_MODE))
