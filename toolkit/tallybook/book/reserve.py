"""The reserve of the disk: with less free room than that, only settles are taken.

What works on jobs must be able to say so to the end; what brings new ones is told to wait.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from tallybook.errors import NoRoom

_LOOK_S = 1.0
_MB = 1_000_000


class Reserve:
    """The free room on the disk of ``root``, looked at once a second: nobody fills a reserve of
    the default size in that time who syncs what he writes. Of a small disk a tenth is kept."""

    def __init__(self, root: Path, megabytes: int) -> None:
        self._root = root
        self._bytes = megabytes * _MB
        self._due_s = 0.0

    def require(self) -> None:
        """Raises NoRoom where less than the reserve is free."""
        now_s = time.monotonic()
        if not self._bytes or now_s < self._due_s:
            return
        found = os.statvfs(self._root)
        free = found.f_bavail * found.f_frsize
        kept = min(self._bytes, found.f_blocks * found.f_frsize // 10)
        if free < kept:
            raise NoRoom(
                f"{self._root}: {free / _MB:,.1f} MB are free on its disk and {kept / _MB:,.1f} MB "
                "are kept for settles; make room, or lower [log] reserve_mb in book.toml; "
                "nothing was changed"
            )
        self._due_s = now_s + _LOOK_S
