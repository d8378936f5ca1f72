"""The WAL of state.db: how far it has grown, and who keeps it from being reset.

SQLite begins the WAL anew once a checkpoint has copied all of it and nobody reads it. A reader
that leaves its transaction open stops that, and the file grows with each change.
"""

from __future__ import annotations

import os
from pathlib import Path

from tallybook.layout import Layout

LARGE_BYTES = 64 * 1024 * 1024
_READ_LOCKS = range(123, 128)  # WAL_READ_LOCK(0) to (4) in the file -shm, sqlite.org/walformat.html


def wal_bytes(layout: Layout) -> int:
    """Size of state.db-wal; 0 where there is none."""
    try:
        return _beside(layout, "-wal").stat().st_size
    except FileNotFoundError:
        return 0


def readers(layout: Layout) -> list[int]:
    """The processes that are inside a read transaction now (Linux; elsewhere none are known)."""
    try:
        status = _beside(layout, "-shm").stat()
        rows = Path("/proc/locks").read_text("ascii").splitlines()
    except OSError:
        return []
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    held = [row.split() for row in rows if "->" not in row]
    return sorted({int(row[4]) for row in held if row[5] == place and _is_read(row)})


def warning(layout: Layout) -> str | None:
    """What is to be said of a WAL over 64 MiB; None of a smaller one."""
    size = wal_bytes(layout)
    if size <= LARGE_BYTES:
        return None
    pids = ", ".join(map(str, readers(layout)))
    who = f"process {pids} reads" if pids else "a process reads"
    return (
        f"state.db-wal has grown to {size // 2**20:,} MiB: {who} state.db in a transaction that "
        "is never ended; end it"
    )


def _is_read(row: list[str]) -> bool:
    return row[1] == "POSIX" and int(row[6]) in _READ_LOCKS


def _beside(layout: Layout, suffix: str) -> Path:
    return layout.state.with_name(layout.state.name + suffix)
