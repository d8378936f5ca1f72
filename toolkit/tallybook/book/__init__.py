"""A book: all state of one node in one folder. It joins log, queue and cache.

``Book`` is what a program uses. ``journal`` is the one road by which anything changes, ``store``
is state.db, the fold of the log that answers questions. Delete state.db and the next ``open``
folds it anew.
"""

from tallybook.book.book import Book
from tallybook.book.changes import Held, Receipt

__all__ = ["Book", "Held", "Receipt"]
