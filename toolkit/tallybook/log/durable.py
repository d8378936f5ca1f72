"""Every sync of the project, each with a name, so that a test can take one out.

Writes, renames and the crash points of a change pass through here too: ``faults`` may be armed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from tallybook.log import faults
from tallybook.log.faults import Hook

_hook: Hook | None = faults.from_environment(os.environ)


@contextmanager
def hooked(hook: Hook) -> Iterator[None]:
    """Ask ``hook`` before each step of this process meanwhile."""
    global _hook
    before, _hook = _hook, hook
    try:
        yield
    finally:
        _hook = before


def at(point: str) -> None:
    """A crash point: a named place on the road of a change. Nothing, unless a test armed it."""
    if _hook is not None:
        _strikes("point", point)


def sync(fd: int, name: str) -> None:
    """Put what was written to ``fd`` on disk. ``name`` says which sync this is.

    A failed sync stops the process: the kernel may have dropped the pages, and what a second
    sync then says is not true.
    """
    try:
        if _hook is None or not _strikes("sync", name):
            os.fdatasync(fd)
    except OSError as error:
        _stop(f"sync of {name} failed: {error.strerror}")


def sync_folder(folder: Path, name: str) -> None:
    """Put the names in ``folder`` on disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _hook is None or not _strikes("sync", name):
            os.fsync(fd)
    except OSError as error:
        _stop(f"sync of {name} failed: {error.strerror}")
    finally:
        os.close(fd)


def replace_file(path: Path, data: bytes, name: str) -> None:
    """Make ``data`` the content of ``path``: whole or not at all, on disk when this returns.

    Its two syncs are ``name`` and ``name`` + " folder".
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.new")
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        write_all(fd, data, name)
        sync(fd, name)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)
    rename(aside, path, name)
    sync_folder(path.parent, f"{name} folder")


def rename(source: Path, target: Path, name: str) -> None:
    """Give ``source`` the name ``target``; on disk once its folder is synced."""
    if _hook is not None:
        _strikes("rename", name)
    source.replace(target)


def write_all(fd: int, data: bytes | bytearray, name: str = "file") -> None:
    """Write all of ``data``; raises OSError when the disk takes only a part."""
    if _hook is not None and (fault := _hook("write", name)):
        _write(fd, data[: len(data) // 2])
        faults.strike(fault)
    written = os.write(fd, data)
    if written < len(data):
        _write(fd, data[written:])


def make_folder(folder: Path, mode: int) -> None:
    """Make ``folder`` and those above it where they are missing; on disk when this returns."""
    missing = [part for part in (folder, *folder.parents) if not part.exists()]
    for part in reversed(missing):
        part.mkdir(mode=mode, exist_ok=True)
        sync_folder(part.parent, "new folder")


def _strikes(kind: str, name: str) -> bool:
    """Let the fault come that is due at this step; whether the step is to be left out."""
    fault = _hook(kind, name) if _hook else None
    if fault and fault.effect != "skip":
        faults.strike(fault)
    return fault is not None


def _write(fd: int, data: bytes | bytearray) -> None:
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, data[written:])


def _stop(reason: str) -> NoReturn:
    sys.stderr.write(f"tallybook: {reason}; this process stops so that nothing is acknowledged\n")
    sys.stderr.flush()
    os._exit(3)
