"""Upkeep of a book beside its work: closed segments compressed, the state kept whole now and then.

Any process may do it at any time, and several at once; a kill in the middle loses nothing.
"""

from __future__ import annotations

import logging
import threading
import time

from tallybook.book import checkpoints
from tallybook.book.book import Book
from tallybook.errors import TallybookError
from tallybook.log.compress import compress_closed

log = logging.getLogger("tallybook.book")
_PERIOD_S = 5.0


def keep_up(book: Book) -> None:
    """Compress closed segments; make a checkpoint where enough events came since the last."""
    compress_closed(book.layout)
    checkpoints.make_if_due(book.layout, book.moment().wall(), book.settings.log.checkpoint_events)


class Upkeep:
    """Does the upkeep of a book in a thread of its own, so that nobody waits for it."""

    def __init__(self, book: Book, period_s: float = _PERIOD_S) -> None:
        self._book = book
        self._period_s = period_s
        self._due_s = 0.0
        self._thread: threading.Thread | None = None

    def rouse(self) -> None:
        """Begin where the last time is a while ago; returns at once."""
        if time.monotonic() < self._due_s or (self._thread and self._thread.is_alive()):
            return
        self._due_s = time.monotonic() + self._period_s
        self._thread = threading.Thread(target=self._run, name="upkeep", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Return when what was begun is over."""
        if self._thread:
            self._thread.join()

    def _run(self) -> None:
        try:
            keep_up(self._book)
        except (TallybookError, OSError) as error:
            log.warning("upkeep is put off: %s", error)
