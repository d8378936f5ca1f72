"""Which life of a log folder writes: ``writer.json``, and whether it is from here.

It names the writer beside the machine, the device and the inode of the file itself. A copy, a
restored folder or a mounted snapshot differs in one of them.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from tallybook.errors import TallybookError
from tallybook.ids import new_writer_id
from tallybook.layout import FILE_MODE, Layout
from tallybook.log.durable import at, sync, write_all

MACHINE_ID = Path("/etc/machine-id")


def read(layout: Layout) -> dict[str, Any] | None:
    """What writer.json says; None where there is none that can be read."""
    try:
        found = json.loads(layout.writer.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) and "writer" in found else None


def is_from_here(layout: Layout, found: dict[str, Any]) -> bool:
    """Whether writer.json was written in this folder, on this machine."""
    return found == _identity(layout, str(found["writer"]))


def begin(layout: Layout) -> str:
    """Begin a new life of the folder; returns its writer. Under the lock. Raises TallybookError."""
    writer = new_writer_id()
    try:
        _write(layout, writer)
    except OSError as error:
        raise TallybookError(
            f"{layout.writer}: cannot be written: {error.strerror}; nothing was changed"
        ) from error
    return writer


def _write(layout: Layout, writer: str) -> None:
    layout.writer.unlink(missing_ok=True)
    fd = os.open(layout.writer, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    try:
        at("writer_created")
        line = json.dumps(_identity(layout, writer), indent=1).encode() + b"\n"
        write_all(fd, line, "writer file")
        sync(fd, "writer file")
    finally:
        os.close(fd)


def _identity(layout: Layout, writer: str) -> dict[str, Any]:
    status = layout.writer.stat()
    return {
        "writer": writer,
        "machine": _machine(),
        "device": status.st_dev,
        "inode": status.st_ino,
    }


def _machine() -> str:
    """A digest of the machine's id, which is itself not to leave the machine."""
    try:
        machine_id = MACHINE_ID.read_bytes().strip()
    except OSError:
        machine_id = b""
    return hashlib.blake2b(b"tallybook" + machine_id, digest_size=16).hexdigest()
