"""The files of an open state.db: whether they are still the ones at their names.

SQLite keeps part of a database in ``-wal`` and ``-shm``. Where one of the three is deleted under
running processes, those who have it open and those who open it anew would see two states, so all
of them leave it: state.db is folded anew.
"""

from __future__ import annotations

import os
from pathlib import Path

from tallybook.log.folder import Seen


class StateFiles:
    """state.db, -wal and -shm as they are now, while a connection holds them open."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._paths = (str(state), f"{state}-wal", f"{state}-shm")
        self._seen = Seen(state.parent)
        self._inodes = self._look()

    def are_replaced(self) -> bool:
        """Whether one of them was deleted or replaced since."""
        try:
            if self._seen.stands():
                return False
            changed_ns = self._seen.changed_ns()
        except FileNotFoundError:  # with the whole book
            return True
        if self._look() != self._inodes:
            return True
        self._seen.note(changed_ns)
        return False

    def abandon(self) -> None:
        """Take state.db away where it is still ours; under the lock, before the connection ends.

        SQLite would else copy a WAL that is no longer the one at its name, and delete that one.
        """
        if self._inodes and self._look()[:1] == self._inodes[:1]:
            self._state.unlink(missing_ok=True)

    def _look(self) -> tuple[int, ...]:
        """The inodes of the files, up to the first that is missing."""
        found: list[int] = []
        try:
            for path in self._paths:
                found.append(os.stat(path).st_ino)  # noqa: PTH116 - a hot path
        except FileNotFoundError:
            return tuple(found)
        return tuple(found)
