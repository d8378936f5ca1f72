"""Whether names came, went or were replaced in a folder: one look at its time in place of many.

A folder's time moves when a name in it is made, renamed or deleted, but only as finely as its file
system counts. A time that is still fresh when it is looked at may be given to a later change too,
so it proves nothing. Look at the time first, then at what the names stand for.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

_TICK_NS = 100_000_000  # more than any tick of a kernel that counts parts of a second
_WHOLE_SECONDS_NS = 3_000_000_000  # FAT counts by two


class Seen:
    """What the names in ``folder`` stood for, as of a look that ``note`` told of."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._noted_ns = -1
        self._settled_ns = -1

    def changed_ns(self) -> int:
        """When the names last changed, in ns since 1970."""
        return os.stat(self._folder).st_mtime_ns  # noqa: PTH116 - a hot path

    def is_noted(self, changed_ns: int) -> bool:
        """Whether it is the time that was noted, which a later change may have too."""
        return changed_ns == self._noted_ns

    def stands(self) -> bool:
        """Whether it is certain that no name came or went since the look."""
        return self.changed_ns() == self._settled_ns

    def note(self, changed_ns: int) -> None:
        """The names were looked at after the folder was seen to have this time."""
        may_stand_still_ns = _TICK_NS if changed_ns % 1_000_000_000 else _WHOLE_SECONDS_NS
        is_settled = time.time_ns() - changed_ns > may_stand_still_ns
        self._noted_ns = changed_ns
        self._settled_ns = changed_ns if is_settled else -1
