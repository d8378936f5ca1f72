"""Every sync of the project, each with a name, so that a test can take one out."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn


def sync(fd: int, name: str) -> None:
    """Put what was written to ``fd`` on disk. ``name`` says which sync this is.

    A failed sync stops the process: the kernel may have dropped the pages, and what a second
    sync then says is not true.
    """
    try:
        os.fdatasync(fd)
    except OSError as error:
        _stop(f"sync of {name} failed: {error.strerror}")


def sync_folder(folder: Path, name: str) -> None:
    """Put the names in ``folder`` on disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    except OSError as error:
        _stop(f"sync of {name} failed: {error.strerror}")
    finally:
        os.close(fd)


def replace_file(path: Path, data: bytes, name: str) -> None:
    """Make ``data`` the content of ``path``: whole or not at all, on disk when this returns."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.new")
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        write_all(fd, data)
        sync(fd, name)
    finally:
        os.close(fd)
    aside.replace(path)
    sync_folder(path.parent, name)


def write_all(fd: int, data: bytes) -> None:
    """Write all of ``data``; raises OSError when the disk takes only a part."""
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, data[written:])


def _stop(reason: str) -> NoReturn:
    sys.stderr.write(f"tallybook: {reason}; this process stops so that nothing is acknowledged\n")
    sys.stderr.flush()
    os._exit(3)
