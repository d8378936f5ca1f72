"""Reading the state of a book that others change meanwhile, and may damage."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from tallybook.book.store import Store


class Reading(AbstractContextManager[Store]):
    """``with`` for reading: ``begin`` gives the state, ``end`` is told what reading it raised.

    A class, since a generator costs more than the read of a small row.
    """

    def __init__(
        self, begin: Callable[[], Store], end: Callable[[BaseException | None], None]
    ) -> None:
        self._begin, self._end = begin, end

    def __enter__(self) -> Store:
        return self._begin()

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._end(error)
