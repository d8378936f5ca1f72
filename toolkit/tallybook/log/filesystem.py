"""Where a book may lie: on a file system that keeps what was synced and sees every lock.

Network and virtual file systems do one of them not, or not always: SQLite's WAL needs memory that
all processes share, and flock is not seen by other machines. Reading is allowed anywhere.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from tallybook.errors import BadInput

_REFUSED = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "fuse", "ceph", "glusterfs", "afs",
     "lustre", "beegfs")
)  # fmt: skip
_MOUNTINFO = Path("/proc/self/mountinfo")
_OCTAL = re.compile(r"\\([0-7]{3})")


def kind_of(mountinfo: str, path: Path) -> str | None:
    """The kind of file system that holds ``path`` (absolute, no links in it).

    ``mountinfo`` is the text of /proc/self/mountinfo, proc_pid_mountinfo(5). The longest mount
    point that is a parent counts, of equal ones the last, which covers the others.
    """
    found: tuple[int, str] | None = None
    for line in mountinfo.splitlines():
        before, dash, after = line.partition(" - ")
        if not dash or len(before.split(" ")) < 5:
            continue
        point = Path(_OCTAL.sub(lambda code: chr(int(code[1], 8)), before.split(" ")[4]))
        if path.is_relative_to(point) and (found is None or len(point.parts) >= found[0]):
            found = len(point.parts), after.split(" ")[0]
    return found[1] if found else None


def is_refused(kind: str) -> bool:
    """Whether a book must not be changed on this kind of file system."""
    return kind in _REFUSED or kind.startswith("fuse.")


def require_fit(root: Path, allowed: str = "") -> None:
    """Raise BadInput where a book at ``root`` could not be kept: the file system is of a refused
    kind other than ``allowed``, mounted for reading only, or the folder is not ours to write."""
    _require_kind(root, _mounted(), allowed)
    place = _existing(root)
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        raise BadInput(f"{root} lies on a file system that is mounted read-only; {_READS}")
    for folder in (place, root / "log"):
        if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
            raise BadInput(f"{folder} is not writable for this user; {_READS}")


_READS = "commands that only read, such as status and log verify, work there"


def _require_kind(root: Path, mountinfo: str, allowed: str) -> None:
    kind = kind_of(mountinfo, root.resolve())
    if kind and is_refused(kind) and kind != allowed:
        raise BadInput(
            f"{root} lies on {kind}, where locks and syncs cannot be relied on: put the book on a "
            "local disk (one node, one book; ship the log), or accept it knowingly in book.toml: "
            f'[node] allow_file_system = "{kind}"'
        )


def _mounted() -> str:
    """What is mounted; nothing is known of it outside Linux."""
    return _MOUNTINFO.read_text("utf-8", "replace") if _MOUNTINFO.exists() else ""


def _existing(path: Path) -> Path:
    """``path``, or the nearest folder above it that is there."""
    whole = path.absolute()
    return next(place for place in (whole, *whole.parents) if place.exists())
