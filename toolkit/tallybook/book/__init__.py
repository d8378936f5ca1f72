"""A book: all state of one node in one folder. It joins log, queue and cache.

``Book`` is what a program uses: ``view`` has its questions, ``changes`` decides what follows from
what is asked. ``journal`` is the one road by which anything changes, ``store`` is state.db, the
fold of the log that answers questions. Delete state.db and ``folding`` makes it anew.
"""

from tallybook.book.book import Book
from tallybook.book.changes import Held, New, Receipt, Settled, Turn, Want
from tallybook.book.view import BookView, HeldLock, ReadBook
from tallybook.queue.contract import Selection

__all__ = [
    "Book", "BookView", "Held", "HeldLock", "New", "ReadBook", "Receipt", "Selection", "Settled",
    "Turn", "Want",
]  # fmt: skip
